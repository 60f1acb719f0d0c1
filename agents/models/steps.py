"""Steps: each call of a model, and each call of a tool, as it was reserved and recorded."""

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from agents.models.runs import Run
from llmbroker import ToolStatus
from tenants.managers import ScopedManager
from tenants.walls import Wall

OUTCOMES = [(status.value, status.value.replace("_", " ")) for status in ToolStatus]


class Step(models.Model):
    """One call. It is reserved (``in_progress``) before it is made and recorded after.

    A model call is followed by the tool calls that it asked for, in the order asked, which
    wait as ``queued``. ``attempts`` counts the reservations: more than one means that a worker
    went away without recording what came of it.
    """

    class Kind(models.TextChoices):
        MODEL_CALL = "model_call", "model call"
        TOOL_CALL = "tool_call", "tool call"

    class Status(models.TextChoices):
        QUEUED = "queued"
        IN_PROGRESS = "in_progress", "in progress"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"

    class Needs(models.TextChoices):
        APPROVAL = "approval", "somebody's approval"
        OUTPUT = "output", "the client's output"
        OUTCOME = "outcome", "word of what became of it"

    OPEN = (Status.QUEUED, Status.IN_PROGRESS)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, db_index=False, related_name="steps")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind.choices)
    status = models.CharField(max_length=11, choices=Status.choices)
    attempts = models.PositiveSmallIntegerField(default=0)
    error = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    # Of a model call.
    message = models.JSONField(null=True, blank=True, help_text="As the model sent it.")
    llm_name = models.CharField("LLM", max_length=200, null=True, blank=True)
    call_id = models.UUIDField("journal's call", null=True, blank=True)
    finish_reason = models.CharField(max_length=50, null=True, blank=True)
    usage = models.JSONField(null=True, blank=True)
    cost_micros = models.BigIntegerField("cost (millionths of a USD)", null=True, blank=True)

    # Of a tool call; names and ids are the model's.
    tool_call_id = models.TextField(null=True, blank=True)
    name = models.TextField(null=True, blank=True)
    arguments = models.JSONField(null=True, blank=True)
    result = models.TextField(null=True, blank=True, help_text="What the model was told.")
    outcome = models.CharField(max_length=20, choices=OUTCOMES, null=True, blank=True)
    effect = models.CharField(max_length=10, null=True, blank=True)
    needs = models.CharField(max_length=8, choices=Needs.choices, null=True, blank=True)
    decision = models.JSONField(
        null=True, blank=True, help_text="What somebody decided: approve, edit or reject."
    )

    wall = Wall(parent=("run_id", "agents_run"))
    objects = ScopedManager["Step"]()

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=["run", "number"], name="step_number_once_per_run"),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "in_progress"], ended_at__isnull=True)
                | Q(status__in=["completed", "failed", "cancelled"], ended_at__isnull=False),
                name="step_ended_when_over",
            ),
            models.CheckConstraint(
                condition=Q(kind="model_call", name__isnull=True, result__isnull=True)
                | Q(kind="tool_call", name__isnull=False, message__isnull=True),
                name="step_holds_what_its_kind_has",
            ),
            models.CheckConstraint(
                condition=~Q(kind="model_call", status="completed") | Q(message__isnull=False),
                name="step_completed_model_call_has_message",
            ),
            models.CheckConstraint(
                condition=~Q(kind="tool_call", status__in=["completed", "failed"])
                | Q(result__isnull=False, outcome__isnull=False)
                | Q(error__isnull=False),
                name="step_answered_tool_call_has_result",
            ),
        )

    def __str__(self) -> str:
        return f"step {self.number} ({self.kind}, {self.status})"
