"""HTTP tools: functions behind a URL of the tenant's."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from agents.models.prompts import EFFECTS, TOOL_NAME, TOOL_NAME_FORM
from agents.models.sealed import SealedRow

MAX_TIMEOUT = 60.0
TIMEOUT_LIMITS = (MinValueValidator(0.1), MaxValueValidator(MAX_TIMEOUT))


class HttpTool(SealedRow):
    """A JSON POST to ``url``, signed with a secret that only the tool's own server shares."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.CharField(max_length=64, validators=[TOOL_NAME])
    description = models.CharField(
        max_length=1024, blank=True, help_text="What models read of it when they choose a tool."
    )
    url = models.CharField("URL", max_length=500)
    parameters = models.JSONField(help_text="The JSON Schema of the arguments, an object's.")
    effect = models.CharField(max_length=10, choices=EFFECTS, default="once")
    requires_approval = models.BooleanField(
        default=False, db_default=False, help_text="Each call waits for somebody's word."
    )
    timeout = models.FloatField(default=10.0, validators=TIMEOUT_LIMITS, help_text="Seconds.")
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "HTTP tool"
        constraints = (
            models.UniqueConstraint(fields=["tenant", "slug"], name="http_tool_slug_per_tenant"),
            models.CheckConstraint(
                condition=Q(slug__regex=TOOL_NAME_FORM), name="http_tool_slug_form"
            ),
            models.CheckConstraint(
                condition=Q(effect__in=["pure", "idempotent", "once"]),
                name="http_tool_effect_known",
            ),
            models.CheckConstraint(
                condition=Q(timeout__gte=0.1, timeout__lte=MAX_TIMEOUT),
                name="http_tool_timeout_range",
            ),
        )

    def __str__(self) -> str:
        return self.slug
