"""What a run waits for, as whoever gives it sends it."""

from __future__ import annotations

from rest_framework import serializers

from agents.serializers.values import JSONObject
from tenants.serializers_base import StrictSerializer


class DecisionInput(StrictSerializer):
    """A decision about one call that waits."""

    tool_call_id = serializers.CharField()
    decision = serializers.ChoiceField(["approve", "edit", "reject"])
    arguments = JSONObject(required=False, help_text="Of an edit: what the tool is called with.")
    message = serializers.CharField(
        max_length=2000,
        required=False,
        allow_blank=True,
        help_text="Of a rejection: what the model is told.",
    )


class ApprovalsInput(StrictSerializer):
    """Decisions, of all calls that wait or of some."""

    approvals = DecisionInput(many=True, allow_empty=False)


class ToolOutputInput(StrictSerializer):
    """What became of one call that waits."""

    tool_call_id = serializers.CharField()
    output = serializers.CharField(allow_blank=True, trim_whitespace=False)
    failed = serializers.BooleanField(required=False)


class ToolOutputsInput(StrictSerializer):
    """Outputs, of all calls that wait or of some."""

    tool_outputs = ToolOutputInput(many=True, allow_empty=False)
