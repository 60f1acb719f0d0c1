"""The conversation that a request brings: OpenAI's messages, checked before anything is stored."""

from __future__ import annotations

from typing import Any, NoReturn

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from llmbroker.models import Message

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_MESSAGES = 2000

_FIELDS = frozenset({"role", "content", "name", "tool_call_id"})


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "role": {"type": "string", "enum": list(ROLES)},
            "content": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "object"}},
                ],
                "nullable": True,
            },
            "name": {"type": "string"},
            "tool_call_id": {"type": "string"},
            "tool_calls": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["role"],
    }
)
class MessageField(serializers.Field[Message, Any, Message, Any]):
    """One message. An assistant's goes back as it came, the provider's own fields included."""

    def to_internal_value(self, data: Any) -> Message:
        """The message unchanged, or ValidationError."""
        if not isinstance(data, dict):
            _refuse("A message is an object with role and content.")
        role = data.get("role")
        if role not in ROLES:
            _refuse(f"role is one of: {', '.join(ROLES)}.", "role")
        unknown = data.keys() - _FIELDS
        if unknown and role != "assistant":
            _refuse("Unknown field.", min(unknown))
        if role == "assistant" and data.get("tool_calls") is not None:
            _check_tool_calls(data["tool_calls"])
        else:
            _check_content(data.get("content"))
        if role == "tool" and not _is_text(data.get("tool_call_id")):
            _refuse("A tool's message names the call that it answers.", "tool_call_id")
        return data

    def to_representation(self, value: Message) -> Message:
        """The message as it is."""
        return value


def _check_content(content: object) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        _refuse("content is text, or a list of parts.", "content")
    for part in content:
        if not isinstance(part, dict) or not _is_text(part.get("type")):
            _refuse("A part is an object with a type.", "content")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            _refuse("A text part has a text.", "content")


def _check_tool_calls(calls: object) -> None:
    if not isinstance(calls, list) or not calls or not all(map(_is_tool_call, calls)):
        _refuse(
            "tool_calls is a list of {id, type, function: {name, arguments}}, arguments a text.",
            "tool_calls",
        )


def _is_tool_call(call: object) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
        return False
    function = call["function"]
    texts = (call.get("id"), function.get("name"))
    return all(map(_is_text, texts)) and isinstance(function.get("arguments"), str)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _refuse(message: str, field: str | None = None) -> NoReturn:
    raise serializers.ValidationError({field: message} if field else message)
