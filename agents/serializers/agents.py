"""Agents."""

from __future__ import annotations

from rest_framework import serializers

from agents.models import Agent, AgentVersion, PromptFunction
from agents.models.agents import MAX_STEPS, PREFERENCES
from agents.serializers.tools import ToolNames
from agents.serializers.values import OutputSchema
from tenants.models.people import SLUG
from tenants.serializers_base import StrictSerializer


class AgentInput(StrictSerializer):
    """An agent to define, or what of it changes."""

    slug = serializers.CharField(max_length=63, validators=[SLUG])
    name = serializers.CharField(max_length=200)
    instructions = serializers.CharField(
        max_length=100_000, required=False, allow_blank=True, trim_whitespace=False
    )
    prompt = serializers.CharField(
        max_length=64,
        required=False,
        allow_null=True,
        help_text="The slug of a prompt function that makes the instructions of each run.",
    )
    tools = ToolNames(required=False)
    max_steps = serializers.IntegerField(min_value=1, max_value=MAX_STEPS, required=False)
    operation = serializers.CharField(max_length=200, required=False, allow_blank=True)
    prefer = serializers.ChoiceField(
        PREFERENCES, required=False, help_text="What decides which model answers."
    )
    output_schema = OutputSchema(required=False, allow_null=True)


class AgentOutput(serializers.ModelSerializer[Agent]):
    """An agent."""

    object = serializers.CharField(default="agent", read_only=True)
    prompt = serializers.SlugRelatedField[PromptFunction](
        slug_field="slug", read_only=True, allow_null=True
    )
    output_schema = serializers.JSONField(read_only=True)
    version = serializers.IntegerField(read_only=True)

    class Meta:
        model = Agent
        fields = (
            "id", "object", "slug", "name", "version", "instructions", "prompt", "tools",
            "max_steps", "operation", "prefer", "output_schema", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields


class AgentVersionOutput(serializers.ModelSerializer[AgentVersion]):
    """What an agent was from one moment on."""

    object = serializers.CharField(default="agent.version", read_only=True)
    output_schema = serializers.JSONField(read_only=True)

    class Meta:
        model = AgentVersion
        fields = (
            "id", "object", "number", "instructions", "prompt", "tools", "max_steps", "operation",
            "prefer", "output_schema", "created_at",
        )  # fmt: skip
        read_only_fields = fields
