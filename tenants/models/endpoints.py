"""Models at endpoints of a tenant's own, beside the common pool."""

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models.keys import KEY_REF
from tenants.models.people import SLUG, Scope, Tenant
from tenants.walls import Wall


class Endpoint(models.Model):
    """One model at one OpenAI-compatible URL; without a scope, for every scope of the tenant."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="endpoints")
    scope = models.ForeignKey(
        Scope, models.CASCADE, null=True, blank=True, related_name="endpoints"
    )
    name = models.CharField(max_length=63, validators=[SLUG])
    base_url = models.CharField("base URL", max_length=500)
    model = models.CharField(max_length=200)
    api_key_ref = models.CharField(
        "key reference",
        max_length=64,
        blank=True,
        validators=[KEY_REF],
        help_text="Empty for a server that asks for no key.",
    )
    parallel = models.PositiveSmallIntegerField(null=True, blank=True)
    weight = models.FloatField(default=0.5)
    context_window = models.PositiveIntegerField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    wall = Wall(scope="scope_id", also_read="{row}.scope_id IS NULL")
    objects = ScopedManager["Endpoint"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "name"], name="endpoint_name_per_tenant"),
            models.CheckConstraint(
                condition=Q(api_key_ref="") | Q(api_key_ref__regex=r"^[A-Z][A-Z0-9_]{1,63}$"),
                name="endpoint_key_ref_form",
            ),
            models.CheckConstraint(
                condition=Q(weight__gte=0.0, weight__lte=1.0), name="endpoint_weight_range"
            ),
            models.CheckConstraint(
                condition=Q(parallel__isnull=True) | Q(parallel__gte=1),
                name="endpoint_parallel_positive",
            ),
            models.CheckConstraint(
                condition=Q(context_window__isnull=True) | Q(context_window__gte=1),
                name="endpoint_context_window_positive",
            ),
        )

    def __str__(self) -> str:
        return self.name
