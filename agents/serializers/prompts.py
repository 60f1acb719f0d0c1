"""Prompt functions and their versions."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from rest_framework import serializers

from agents.models import PromptVersion
from agents.models.prompts import EFFECTS, TOOL_NAME
from agents.serializers.tools import ToolNames
from agents.serializers.values import JSONObject, VariableValues
from llmbroker.prompts.segments import RenderedPrompt
from tenants.serializers_base import StrictSerializer

MAX_TEMPLATE = 100_000
MAX_TEMPLATE_MESSAGES = 64
MAX_VARIABLES = 64


class TemplateMessage(StrictSerializer):
    """One message of a template."""

    role = serializers.ChoiceField(["system", "developer", "user", "assistant"])
    content = serializers.CharField(max_length=MAX_TEMPLATE, trim_whitespace=False)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"role": {"type": "string"}, "content": {"type": "string"}},
                },
            },
        ]
    }
)
class TemplateField(serializers.Field[Any, Any, Any, Any]):
    """One text, or a list of messages."""

    def to_internal_value(self, data: Any) -> Any:
        """The template, its texts fit to be stored."""
        if isinstance(data, list) and 0 < len(data) <= MAX_TEMPLATE_MESSAGES:
            reader = TemplateMessage(data=data, many=True)
            reader.is_valid(raise_exception=True)
            return [dict(message) for message in reader.validated_data]
        if not isinstance(data, str):
            raise serializers.ValidationError("A template is a text, or a list of messages.")
        text = serializers.CharField(max_length=MAX_TEMPLATE, trim_whitespace=False)
        return text.run_validation(data)

    def to_representation(self, value: Any) -> Any:
        """As it was given."""
        return value


class VariableSchemas(JSONObject):
    """A JSON Schema for each variable, by name."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The schemas, if they are some."""
        schemas = super().to_internal_value(data)
        if len(schemas) > MAX_VARIABLES:
            raise serializers.ValidationError(f"A prompt has up to {MAX_VARIABLES} variables.")
        for name, schema in schemas.items():
            try:
                Draft202012Validator.check_schema(schema)
            except SchemaError as error:
                problem = f"{name} has no valid JSON Schema: {error.message[:200]}"
            else:
                if isinstance(schema, dict):
                    continue
                problem = f"{name} needs a JSON Schema, such as {{'type': 'string'}}."
            raise serializers.ValidationError(problem)
        return schemas


class VersionInput(StrictSerializer):
    """What a prompt function says from now on."""

    template = TemplateField()
    description = serializers.CharField(max_length=1024, required=False, allow_blank=True)
    variables = VariableSchemas(required=False, allow_null=True)
    tools = ToolNames(required=False)
    effect = serializers.ChoiceField(EFFECTS, required=False, allow_null=True)


class PromptInput(VersionInput):
    """A prompt function to define."""

    slug = serializers.CharField(max_length=64, validators=[TOOL_NAME])


class VersionOutput(serializers.ModelSerializer[PromptVersion]):
    """A prompt function as one of its versions has it."""

    object = serializers.CharField(default="prompt", read_only=True)
    slug = serializers.CharField(source="prompt.slug", read_only=True)
    version = serializers.IntegerField(source="number", read_only=True)
    template = TemplateField(read_only=True)
    variables = serializers.JSONField(read_only=True)

    class Meta:
        model = PromptVersion
        fields: ClassVar = (
            "id", "object", "slug", "version", "template", "description", "variables", "tools",
            "effect", "created_at",
        )  # fmt: skip
        read_only_fields = fields


class RenderInput(StrictSerializer):
    """Values to try a prompt out with."""

    variables = VariableValues(required=False)
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)


class SegmentOutput(serializers.Serializer[Any]):
    """A piece of text: the template's own, a variable's value, or a function's result."""

    text = serializers.CharField()
    origin = serializers.CharField()
    name = serializers.CharField(allow_null=True)


class RenderedMessageOutput(serializers.Serializer[Any]):
    """A message, whole and in pieces."""

    role = serializers.CharField()
    content = serializers.CharField()
    segments = SegmentOutput(many=True)


class RenderOutput(serializers.Serializer[RenderedPrompt]):
    """What would be sent."""

    object = serializers.CharField(default="prompt.render", read_only=True)
    messages = RenderedMessageOutput(many=True)
