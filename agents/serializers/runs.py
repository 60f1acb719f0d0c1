"""Runs, their steps and their events."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.messages import MAX_MESSAGES, MessageField
from agents.models import Agent, AgentVersion, Event, Run, Step
from agents.models.agents import MAX_STEPS, PREFERENCES
from agents.serializers.http_tools import ObjectSchema
from agents.serializers.tools import ToolNames
from agents.serializers.values import Metadata, OutputSchema, VariableValues
from agents.services.threads import STRATEGIES
from agents.streams.frames import event_json
from agents.structured import answer_of
from tenants.serializers_base import StrictSerializer

MAX_DELAY = 366 * 86_400.0


def _limit(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, allow_null=True, help_text=help_text
    )


class ClientTool(StrictSerializer):
    """A tool that whoever created the run runs itself."""

    name = serializers.RegexField(r"^[A-Za-z0-9_-]{1,64}\Z")
    description = serializers.CharField(max_length=1024, required=False, allow_blank=True)
    parameters = ObjectSchema()


class RunInput(StrictSerializer):
    """A run to create. What is left out, or null, comes from the agent."""

    messages = serializers.ListField(child=MessageField(), min_length=1, max_length=MAX_MESSAGES)
    agent = serializers.CharField(
        max_length=63, required=False, allow_null=True, help_text="An agent's slug."
    )
    tools = ToolNames(required=False, allow_null=True)
    client_tools = ClientTool(
        many=True, required=False, help_text="Tools that you run, and submit the outputs of."
    )
    max_steps = serializers.IntegerField(
        min_value=1,
        max_value=MAX_STEPS,
        required=False,
        allow_null=True,
        help_text="Calls of a model at most.",
    )
    max_tool_calls = _limit("Calls of tools at most.")
    max_tokens = _limit("Tokens of all model calls together at most.")
    max_cost = serializers.DecimalField(
        max_digits=12,
        decimal_places=6,
        min_value=Decimal("0.000001"),
        required=False,
        allow_null=True,
        help_text="US dollars at most, as far as prices are known.",
    )
    max_seconds = _limit("Seconds from its start at most, waiting included.")
    final_answer = serializers.BooleanField(
        required=False, help_text="At max_steps or in a loop, one last answer without tools."
    )
    after_seconds = serializers.FloatField(
        min_value=0, max_value=MAX_DELAY, required=False, allow_null=True
    )
    start_at = serializers.DateTimeField(required=False, allow_null=True)
    expires_after = serializers.FloatField(
        min_value=1,
        max_value=MAX_DELAY,
        required=False,
        allow_null=True,
        help_text="Seconds until the run expires if it then still waits.",
    )
    operation = serializers.CharField(max_length=200, required=False, allow_null=True)
    trace_id = serializers.CharField(
        max_length=200,
        required=False,
        allow_null=True,
        help_text="Ties the run's calls in the journal together; the run's id if left out.",
    )
    variables = VariableValues(
        required=False, allow_null=True, help_text="For the prompt of the agent's instructions."
    )
    prefer = serializers.ChoiceField(
        PREFERENCES,
        required=False,
        allow_null=True,
        help_text="What decides which model answers.",
    )
    output_schema = OutputSchema(
        required=False,
        allow_null=True,
        help_text="What the final answer must fit; a misfit is mended once, or fails the run.",
    )
    deltas = serializers.BooleanField(
        required=False,
        help_text="Tell streams what models say from the first word on. Otherwise calls that"
        " begin within half a second of the stream are told whole.",
    )
    metadata = Metadata(required=False, allow_null=True)


class ThreadRunInput(RunInput):
    """A run of a thread. Its own messages are said in the thread first."""

    messages = serializers.ListField(
        child=MessageField(), required=False, default=list, max_length=MAX_MESSAGES
    )
    multitask_strategy = serializers.ChoiceField(
        STRATEGIES,
        required=False,
        help_text="When a run of the thread is going: refuse (409), wait for it, or cancel it.",
    )


class RetryInput(StrictSerializer):
    """Where a new run goes on."""

    step = serializers.IntegerField(
        min_value=1,
        required=False,
        allow_null=True,
        help_text="The number of a model call, which is made again; the last one if left out.",
    )


class RunFilter(StrictSerializer):
    """Which runs of the scope are meant: those that fit everything that is given."""

    agent = serializers.CharField(max_length=63, required=False)
    status = serializers.ChoiceField(
        [Run.Status.QUEUED, Run.Status.IN_PROGRESS, Run.Status.REQUIRES_ACTION], required=False
    )
    operation = serializers.CharField(max_length=200, required=False)
    trace_id = serializers.CharField(max_length=200, required=False)
    thread_id = serializers.UUIDField(required=False)
    schedule_id = serializers.UUIDField(required=False)
    created_before = serializers.DateTimeField(required=False)
    metadata = Metadata(required=False, help_text="Runs that have all these notes.")
    all = serializers.BooleanField(required=False, help_text="true means every run.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The conditions as the ORM takes them; everything only where that is said."""
        everything = attrs.pop("all", False)
        if bool(attrs) == everything:
            raise serializers.ValidationError('Give a filter, or {"all": true}.')
        return {_LOOKUPS.get(name, name): value for name, value in attrs.items()}


_LOOKUPS = {
    "agent": "agent__slug",
    "created_before": "created_at__lt",
    "metadata": "metadata__contains",
}


class CancelledRuns(serializers.Serializer[Any]):
    """What a cancellation by filter did."""

    cancelled = serializers.IntegerField()
    has_more = serializers.BooleanField(help_text="Ask again: so many at once are not cancelled.")


class RunSummary(serializers.ModelSerializer[Run]):
    """A run without its conversation, as lists show it."""

    object = serializers.CharField(default="run", read_only=True)
    agent = serializers.SlugRelatedField[Agent](slug_field="slug", read_only=True, allow_null=True)
    agent_version = serializers.SlugRelatedField[AgentVersion](
        slug_field="number", read_only=True, allow_null=True
    )
    thread_id = serializers.UUIDField(read_only=True, allow_null=True)
    schedule_id = serializers.UUIDField(read_only=True, allow_null=True)
    usage = serializers.JSONField(read_only=True)
    incomplete_details = serializers.SerializerMethodField()
    required_action = serializers.SerializerMethodField()
    effects = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            "id", "object", "status", "agent", "agent_version", "thread_id", "schedule_id",
            "scheduled_for", "tools", "max_steps", "max_tool_calls", "max_tokens", "max_cost",
            "max_seconds", "operation", "trace_id", "prefer", "deltas", "metadata",
            "output_text", "usage", "incomplete_details", "required_action", "effects",
            "last_error",
            "cancel_requested_at", "created_at", "due_at", "expires_at", "started_at", "ended_at",
        )  # fmt: skip
        read_only_fields = fields

    def get_incomplete_details(self, run: Run) -> dict[str, str] | None:
        """Why the run stopped before its end."""
        return {"reason": run.incomplete_reason} if run.incomplete_reason else None

    def get_required_action(self, run: Run) -> dict[str, Any] | None:
        """The tool calls that wait for somebody, and for what."""
        if run.status != Run.Status.REQUIRES_ACTION:
            return None
        waiting = run.steps.filter(needs__isnull=False)
        shown = waiting.values("tool_call_id", "name", "arguments", "number", "needs")
        calls = [dict(each) for each in shown]
        approvals = any(call["needs"] == Step.Needs.APPROVAL for call in calls)
        kind = "submit_approvals" if approvals else "submit_tool_outputs"
        return {"type": kind, "tool_calls": calls}

    def get_effects(self, run: Run) -> list[dict[str, Any]] | None:
        """Of a run that was cancelled: the tool calls that have changed something, or may have."""
        if run.cancel_requested_at is None:
            return None
        changing = run.steps.filter(effect__in=["idempotent", "once"], attempts__gte=1)
        shown = changing.values("tool_call_id", "name", "effect", "outcome", "ended_at")
        return [dict(each) for each in shown]


class RunOutput(RunSummary):
    """A run with the messages that it started from."""

    output_schema = serializers.JSONField(read_only=True)
    output = serializers.SerializerMethodField()

    class Meta(RunSummary.Meta):
        fields = (*RunSummary.Meta.fields, "messages", "output_schema", "output")
        read_only_fields = fields

    @extend_schema_field(OpenApiTypes.ANY)
    def get_output(self, run: Run) -> Any:
        """The answer as JSON, of a run whose answer had to fit a schema."""
        if run.output_schema is None or run.status != Run.Status.COMPLETED:
            return None
        return answer_of(run.output_text or "")


class StepOutput(serializers.ModelSerializer[Step]):
    """A step: a call of a model (message, llm_name, call_id, usage) or of a tool (the others)."""

    object = serializers.CharField(default="run.step", read_only=True)

    class Meta:
        model = Step
        fields = (
            "id", "object", "number", "kind", "status", "attempts", "message", "llm_name",
            "call_id", "finish_reason", "usage", "tool_call_id", "name", "arguments", "result",
            "outcome", "effect",
            "needs", "decision", "error", "started_at", "ended_at",
        )  # fmt: skip
        read_only_fields = fields


class EventOutput(serializers.ModelSerializer[Event]):
    """Something that happened. Its data points to steps by their numbers."""

    object = serializers.CharField(default="run.event", read_only=True)

    class Meta:
        model = Event
        fields = ("id", "object", "sequence_number", "type", "data", "created_at")
        read_only_fields = fields

    def to_representation(self, instance: Event) -> dict[str, Any]:
        """As streams show it."""
        return event_json(instance)
