"""Prompt functions of tenants: templates that runs can call as tools, version by version."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models import Tenant
from tenants.walls import Wall

EFFECTS = [(name, name) for name in ("pure", "idempotent", "once")]
TOOL_NAME_FORM = r"^[0-9A-Za-z_]+-[0-9A-Za-z_]+$"
TOOL_NAME = RegexValidator(
    rf"\A{TOOL_NAME_FORM[1:-1]}\Z",
    "A tool is called plugin-function: two words of letters A-Z, digits and _, and one dash.",
)


class PromptFunction(models.Model):
    """A prompt under a name. What it says is in its versions; the newest one is in use."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="prompt_functions")
    slug = models.CharField(max_length=64, validators=[TOOL_NAME])
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall()
    objects = ScopedManager["PromptFunction"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "slug"], name="prompt_slug_per_tenant"),
            # The target of foreign keys that name a prompt together with its tenant.
            models.UniqueConstraint(fields=["id", "tenant"], name="prompt_id_with_tenant"),
            models.CheckConstraint(
                condition=Q(slug__regex=TOOL_NAME_FORM), name="prompt_slug_form"
            ),
        )

    def __str__(self) -> str:
        return self.slug


class PromptVersion(models.Model):
    """What a prompt function said from one moment on. The database refuses to change it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    prompt = models.ForeignKey(
        PromptFunction, models.CASCADE, db_index=False, related_name="versions"
    )
    number = models.PositiveIntegerField()
    template = models.JSONField(help_text="One text, or a list of messages with role and content.")
    description = models.CharField(
        max_length=1024, blank=True, help_text="What models read of it when they choose a tool."
    )
    variables = models.JSONField(
        null=True,
        blank=True,
        help_text="A JSON Schema per variable; inferred from the template if left out.",
    )
    tools = ArrayField(
        models.CharField(max_length=64),
        default=list,
        blank=True,
        help_text="What the model may call while it answers.",
    )
    effect = models.CharField(max_length=10, choices=EFFECTS, null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(parent=("prompt_id", "agents_promptfunction"))
    objects = ScopedManager["PromptVersion"]()

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=["prompt", "number"], name="prompt_version_number_once"),
            models.CheckConstraint(
                condition=Q(effect__isnull=True) | Q(effect__in=["pure", "idempotent", "once"]),
                name="prompt_version_effect_known",
            ),
        )

    def __str__(self) -> str:
        return f"version {self.number}"
