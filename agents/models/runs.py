"""Runs. PostgreSQL is the truth about them: the queue only says that one is worth a look."""

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from agents.models.agents import (
    DEFAULT_STEPS,
    MAX_STEPS,
    PREFERENCES,
    STEP_LIMITS,
    Agent,
    AgentVersion,
)
from agents.models.schedules import Schedule
from agents.models.threads import Thread
from tenants.managers import ScopedManager
from tenants.models import Scope, Tenant
from tenants.walls import Wall


class Run(models.Model):
    """One job of a model with tools, in the name of one scope.

    The conversation is ``messages`` followed by what its steps hold. A worker may write only
    while ``fence`` is the number that it was given when it claimed the run.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        IN_PROGRESS = "in_progress", "in progress"
        REQUIRES_ACTION = "requires_action", "requires action"
        CANCELLING = "cancelling"
        CANCELLED = "cancelled"
        COMPLETED = "completed"
        FAILED = "failed"
        INCOMPLETE = "incomplete"
        EXPIRED = "expired"

    class IncompleteReason(models.TextChoices):
        MAX_STEPS = "max_steps", "max steps"
        MAX_TOKENS = "max_tokens", "max tokens"
        BUDGET = "budget"
        DEADLINE = "deadline"
        LOOP = "loop"

    # Tuples, for queries and constraints. A run in WORKING is some worker's, or was until it died.
    WAITING = (Status.QUEUED, Status.REQUIRES_ACTION)
    WORKING = (Status.IN_PROGRESS, Status.CANCELLING)
    CLAIMABLE = (Status.QUEUED, *WORKING)
    TERMINAL = (
        Status.CANCELLED,
        Status.COMPLETED,
        Status.FAILED,
        Status.INCOMPLETE,
        Status.EXPIRED,
    )

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="runs")
    scope = models.ForeignKey(Scope, models.CASCADE, db_index=False, related_name="runs")
    agent = models.ForeignKey(Agent, models.SET_NULL, null=True, blank=True, related_name="runs")
    agent_version = models.ForeignKey(
        AgentVersion, models.SET_NULL, null=True, blank=True, db_index=False, related_name="+"
    )
    thread = models.ForeignKey(
        Thread, models.SET_NULL, null=True, blank=True, db_index=False, related_name="runs"
    )
    schedule = models.ForeignKey(
        Schedule, models.SET_NULL, null=True, blank=True, db_index=False, related_name="runs"
    )
    scheduled_for = models.DateTimeField(null=True, blank=True)

    # What was asked.
    messages = models.JSONField()
    tools = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    max_steps = models.PositiveSmallIntegerField(default=DEFAULT_STEPS, validators=STEP_LIMITS)
    client_tools = models.JSONField(
        default=list, blank=True, help_text="Tools that the client runs, as schemas."
    )
    max_tool_calls = models.PositiveIntegerField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    max_cost = models.DecimalField(
        "max cost (USD)", max_digits=12, decimal_places=6, null=True, blank=True
    )
    max_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="From its start, waiting included."
    )
    final_answer = models.BooleanField(
        default=False, help_text="At max_steps or in a loop, one last answer without tools."
    )
    operation = models.CharField(max_length=200, null=True, blank=True)
    trace_id = models.CharField("trace", max_length=200)
    prefer = models.CharField(max_length=7, choices=PREFERENCES, default="quality")
    output_schema = models.JSONField(null=True, blank=True)
    deltas = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Tell what models say while they say it, whoever listens.",
    )
    metadata = models.JSONField(default=dict, blank=True)
    history_index = models.PositiveSmallIntegerField(
        null=True,
        editable=False,
        help_text="While the run waits for its turn in its thread: where in its messages the"
        " thread's will go.",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    idempotency_key = models.CharField(max_length=255, null=True, blank=True, editable=False)
    request_fingerprint = models.CharField(max_length=64, blank=True, editable=False)

    # Where it stands.
    status = models.CharField(max_length=15, choices=Status.choices, default=Status.QUEUED)
    output_text = models.TextField(null=True, blank=True)
    usage = models.JSONField(null=True, blank=True, help_text="Summed over all model calls.")
    incomplete_reason = models.CharField(
        max_length=10, choices=IncompleteReason.choices, null=True, blank=True
    )
    last_error = models.JSONField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    # Who works on it, and from when on a worker may take it while it is queued. Leases are told
    # by the database's clock alone.
    fence = models.PositiveBigIntegerField(default=0, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, editable=False)

    wall = Wall(scope="scope_id", lookup=("'run:' || {row}.id = {lookup}",))
    objects = ScopedManager["Run"]()
    unscoped: ClassVar[models.Manager["Run"]] = models.Manager()

    class Meta:
        indexes = (
            models.Index(fields=["scope", "id"], name="run_of_scope"),
            models.Index(
                fields=["thread", "id"], condition=Q(thread__isnull=False), name="run_of_thread"
            ),
            # What workers look through: each tenant's queue, and the few that are worked on. A
            # heartbeat changes no column of either.
            models.Index(
                fields=["tenant", "due_at"], condition=Q(status="queued"), name="run_queue"
            ),
            models.Index(
                fields=["thread"],
                condition=Q(status="queued", history_index__isnull=False),
                name="run_held",
            ),
            models.Index(
                fields=["tenant", "scope"],
                condition=Q(status__in=["in_progress", "cancelling"]),
                name="run_at_work",
            ),
            models.Index(
                fields=["expires_at"],
                condition=Q(status__in=["queued", "requires_action"], expires_at__isnull=False),
                name="run_expires",
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(
                    thread__isnull=False,
                    history_index__isnull=True,
                    status__in=["queued", "in_progress", "requires_action", "cancelling"],
                ),
                name="run_one_active_per_thread",
            ),
            models.UniqueConstraint(
                fields=["schedule", "scheduled_for"],
                condition=Q(schedule__isnull=False),
                name="run_once_per_tick",
            ),
            models.CheckConstraint(
                condition=Q(history_index__isnull=True)
                | Q(status__in=["queued", "cancelled", "expired"]),
                name="run_begins_with_its_turn",
            ),
            models.UniqueConstraint(
                fields=["scope", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="run_idempotency_key_once",
            ),
            models.CheckConstraint(
                condition=Q(max_steps__gte=1, max_steps__lte=MAX_STEPS), name="run_max_steps_range"
            ),
            models.CheckConstraint(
                condition=Q(
                    status__in=["queued", "in_progress", "requires_action", "cancelling"],
                    ended_at__isnull=True,
                )
                | Q(
                    status__in=["cancelled", "completed", "failed", "incomplete", "expired"],
                    ended_at__isnull=False,
                ),
                name="run_ended_when_over",
            ),
            models.CheckConstraint(
                condition=Q(lease_until__isnull=True) | Q(status__in=["in_progress", "cancelling"]),
                name="run_lease_only_while_working",
            ),
            models.CheckConstraint(
                condition=Q(
                    status="incomplete",
                    incomplete_reason__isnull=False,
                    incomplete_reason__in=["max_steps", "max_tokens", "budget", "deadline", "loop"],
                )
                | Q(~Q(status="incomplete"), incomplete_reason__isnull=True),
                name="run_incomplete_says_why",
            ),
            models.CheckConstraint(
                condition=Q(status="failed", last_error__isnull=False)
                | Q(~Q(status="failed"), last_error__isnull=True),
                name="run_failed_says_why",
            ),
            models.CheckConstraint(
                condition=~Q(status="cancelling") | Q(cancel_requested_at__isnull=False),
                name="run_cancelling_was_asked",
            ),
        )

    def __str__(self) -> str:
        return f"run {self.id} ({self.status})"

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and will not change again."""
        return self.status in self.TERMINAL
