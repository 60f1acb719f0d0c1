"""JSON that people write: values and schemas, bounded in size and kept storable."""

from __future__ import annotations

from typing import Any

import orjson
from rest_framework import serializers

from agents.structured import schema_problem
from llmbroker.text import storable_json

MAX_BYTES = 200_000
MAX_METADATA = 16


class JSONObject(serializers.DictField):
    """A JSON object of moderate size."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The object, if it is one and can be stored."""
        value = super().to_internal_value(data)
        try:
            written = orjson.dumps(storable_json(value))
        except (TypeError, ValueError, RecursionError):
            raise serializers.ValidationError("This is no JSON that can be stored.") from None
        if len(written) > MAX_BYTES:
            raise serializers.ValidationError(f"This has more than {MAX_BYTES} bytes.")
        return dict(orjson.loads(written))


class VariableValues(JSONObject):
    """Values of a prompt's variables, by name."""


class OutputSchema(JSONObject):
    """The JSON Schema that a final answer must fit."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The schema, if answers can be checked against it."""
        schema = super().to_internal_value(data)
        problem = schema_problem(schema)
        if problem is not None:
            raise serializers.ValidationError(problem)
        return schema


class Metadata(serializers.DictField):
    """A few short notes of the caller's own."""

    child = serializers.CharField(max_length=512, allow_blank=True)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        """The notes, if they are few and short."""
        notes: dict[str, str] = super().to_internal_value(data)
        if len(notes) > MAX_METADATA or any(len(name) > 64 for name in notes):
            raise serializers.ValidationError(
                f"metadata has up to {MAX_METADATA} entries, with names of up to 64 characters."
            )
        return notes
