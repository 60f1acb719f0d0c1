"""Provider keys, sealed."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models.encryption import DataKey
from tenants.models.indexes import beginnings_of
from tenants.models.people import Scope, Tenant
from tenants.walls import SHARED_SCOPE, Wall

KEY_REF = RegexValidator(
    r"\A[A-Z][A-Z0-9_]{1,63}\Z",
    "A key reference is 2–64 capitals, digits and underscores, such as OPENAI_API_KEY.",
)


class ProviderKey(models.Model):
    """A key to a provider. Its value exists only sealed: bound to this tenant and this row."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        REFUSED = "refused", "refused by the provider"
        DISABLED = "disabled"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="provider_keys")
    scope = models.ForeignKey(Scope, models.CASCADE, related_name="provider_keys")
    ref = models.CharField("reference", max_length=64, validators=[KEY_REF])
    label = models.CharField(max_length=200, blank=True)
    sealed = models.BinaryField()
    data_key = models.ForeignKey(DataKey, models.RESTRICT, related_name="provider_keys")
    hint = models.CharField(max_length=4, blank=True, editable=False)
    fingerprint = models.BinaryField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    priority = models.PositiveSmallIntegerField(
        default=100, help_text="The smaller is tried first."
    )
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_error = models.CharField(max_length=500, blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    wall = Wall(scope="scope_id", also_read=SHARED_SCOPE)
    objects = ScopedManager["ProviderKey"]()

    class Meta:
        indexes = (beginnings_of("ref", "providerkey"), beginnings_of("label", "providerkey"))
        constraints = (
            # Also the index of every look-up by scope and reference.
            models.UniqueConstraint(
                fields=["scope", "ref", "fingerprint"], name="providerkey_value_once"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["active", "refused", "disabled"]),
                name="providerkey_status_known",
            ),
            models.CheckConstraint(
                condition=Q(ref__regex=r"^[A-Z][A-Z0-9_]{1,63}$"), name="providerkey_ref_form"
            ),
        )

    def __str__(self) -> str:
        return f"{self.ref} …{self.hint}"
