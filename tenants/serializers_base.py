"""The base of every serializer that reads a request."""

from typing import Any

from rest_framework import serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know, and those that only the server writes.

    Text fields refuse NUL and lone surrogates already: DRF's CharField does.
    """

    def to_internal_value(self, data: Any) -> Any:
        """The validated values; ValidationError naming the first unknown field."""
        if isinstance(data, dict):
            writable = {field.field_name for field in self._writable_fields}
            unknown = [name for name in data if name not in writable]
            if unknown:
                raise serializers.ValidationError({unknown[0]: "Unknown field."}, code="unknown")
        return super().to_internal_value(data)
