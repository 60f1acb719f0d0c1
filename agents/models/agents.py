"""Agents: what a run starts from, so that a request need not repeat it."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from agents.models.prompts import PromptFunction
from tenants.managers import ScopedManager
from tenants.models import Tenant
from tenants.models.people import SLUG
from tenants.walls import Wall

MAX_STEPS = 100
DEFAULT_STEPS = 8
STEP_LIMITS = (MinValueValidator(1), MaxValueValidator(MAX_STEPS))


PREFERENCES = [(name, name) for name in ("quality", "latency", "cost")]


class Agent(models.Model):
    """Instructions and tools under a name. A run copies them: later changes do not reach it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="agents")
    slug = models.CharField(max_length=63, validators=[SLUG])
    name = models.CharField(max_length=200)
    instructions = models.TextField(blank=True)
    prompt = models.ForeignKey(
        PromptFunction,
        models.RESTRICT,
        null=True,
        blank=True,
        related_name="agents",
        help_text="Makes the instructions of each run, in place of those written here.",
    )
    tools = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    max_steps = models.PositiveSmallIntegerField(default=DEFAULT_STEPS, validators=STEP_LIMITS)
    operation = models.CharField(
        max_length=200,
        blank=True,
        help_text="The name of the task in the journal and in ratings; the slug if left out.",
    )
    prefer = models.CharField(
        max_length=7, choices=PREFERENCES, default="quality", help_text="What decides which model."
    )
    output_schema = models.JSONField(
        null=True, blank=True, help_text="The JSON Schema that a run's final answer must fit."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    wall = Wall()
    objects = ScopedManager["Agent"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["tenant", "slug"], name="agent_slug_per_tenant"),
            # The target of the foreign key that names an agent together with its tenant.
            models.UniqueConstraint(fields=["id", "tenant"], name="agent_id_with_tenant"),
            models.CheckConstraint(
                condition=Q(max_steps__gte=1, max_steps__lte=MAX_STEPS),
                name="agent_max_steps_range",
            ),
            models.CheckConstraint(
                condition=Q(prefer__in=["quality", "latency", "cost"]), name="agent_prefer_known"
            ),
        )

    def __str__(self) -> str:
        return self.slug


class AgentVersion(models.Model):
    """What an agent was from one moment on. The database refuses to change it.

    The prompt is kept by its slug: it may be deleted while the version stays.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, db_index=False, related_name="versions")
    number = models.PositiveIntegerField()
    instructions = models.TextField(blank=True)
    prompt = models.CharField(max_length=64, null=True)
    tools = ArrayField(models.CharField(max_length=64), default=list)
    max_steps = models.PositiveSmallIntegerField()
    operation = models.CharField(max_length=200, blank=True)
    prefer = models.CharField(max_length=7, choices=PREFERENCES)
    output_schema = models.JSONField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(parent=("agent_id", "agents_agent"))
    objects = ScopedManager["AgentVersion"]()

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=["agent", "number"], name="agent_version_number_once"),
        )

    def __str__(self) -> str:
        return f"version {self.number}"
