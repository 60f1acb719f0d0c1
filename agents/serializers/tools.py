"""Tools, and how requests name them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

MAX_TOOLS = 64


class ToolNames(serializers.ListField):
    """Names of tools, each once."""

    child = serializers.CharField(max_length=64)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_TOOLS, **kwargs)

    def to_internal_value(self, data: Any) -> list[str]:
        """The names in the order given."""
        return list(dict.fromkeys(super().to_internal_value(data)))


class ToolOutput(serializers.Serializer[Any]):
    """A tool that runs and agents can name."""

    object = serializers.CharField(default="tool", read_only=True)
    name = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.JSONField()
    effect = serializers.CharField()
    requires_approval = serializers.BooleanField()
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="native, prompt, http or mcp"
    )
    aliases = serializers.ListField(child=serializers.CharField())
