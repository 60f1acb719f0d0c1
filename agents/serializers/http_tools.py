"""HTTP tools. No serializer here has a field for a stored secret."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from rest_framework import serializers

from agents.models import HttpTool
from agents.models.http_tools import MAX_TIMEOUT
from agents.models.prompts import EFFECTS, TOOL_NAME
from agents.serializers.values import JSONObject
from tenants.serializers_base import StrictSerializer


class ObjectSchema(JSONObject):
    """The JSON Schema of a tool's arguments."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The schema, if it is one of an object."""
        schema = super().to_internal_value(data)
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            problem = f"This is no valid JSON Schema: {error.message[:200]}"
        else:
            if schema.get("type") == "object" and isinstance(schema.get("properties", {}), dict):
                return schema
            problem = "Arguments are an object: {'type': 'object', 'properties': {…}}."
        raise serializers.ValidationError(problem)


class HttpToolChange(StrictSerializer):
    """What of an HTTP tool can change."""

    url = serializers.CharField(max_length=500)
    description = serializers.CharField(max_length=1024, required=False, allow_blank=True)
    parameters = ObjectSchema()
    effect = serializers.ChoiceField(EFFECTS, required=False)
    requires_approval = serializers.BooleanField(required=False)
    timeout = serializers.FloatField(min_value=0.1, max_value=MAX_TIMEOUT, required=False)
    enabled = serializers.BooleanField(required=False)


class HttpToolInput(HttpToolChange):
    """An HTTP tool to define."""

    slug = serializers.CharField(max_length=64, validators=[TOOL_NAME])


class HttpToolOutput(serializers.ModelSerializer[HttpTool]):
    """An HTTP tool."""

    object = serializers.CharField(default="http_tool", read_only=True)
    parameters = serializers.JSONField(read_only=True)

    class Meta:
        model = HttpTool
        fields: tuple[str, ...] = (
            "id", "object", "slug", "description", "url", "parameters", "effect",
            "requires_approval", "timeout", "enabled", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields


class NewHttpTool(HttpToolOutput):
    """An HTTP tool with the secret that signs its requests, in the one answer that shows it."""

    secret = serializers.CharField(read_only=True, allow_null=True)

    class Meta(HttpToolOutput.Meta):
        fields = (*HttpToolOutput.Meta.fields, "secret")
