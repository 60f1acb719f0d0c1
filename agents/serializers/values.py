"""JSON that people write: values and schemas, bounded in size and kept storable."""

from __future__ import annotations

from typing import Any

import orjson
from rest_framework import serializers

from llmbroker.text import storable_json

MAX_BYTES = 200_000


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
