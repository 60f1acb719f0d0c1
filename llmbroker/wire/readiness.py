"""Tells in one cheap pass whether a conversation can be sent as it is, as nearly all can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmbroker.models import Message
from llmbroker.wire.profiles import Profile
from llmbroker.wire.tool_calls import is_object_text
from llmbroker.wire.tool_ids import TOOL_NAME, id_pattern

_TOOL_KEYS = {"role", "tool_call_id", "content"}
_TURN_KEYS = {"role", "content", "tool_calls"}
_CALL_KEYS = {"id", "type", "function"}
_FUNCTION_KEYS = {"name", "arguments"}


def is_ready(messages: Sequence[Message], profile: Profile, *, with_tools: bool) -> bool:
    """Whether the repair has nothing to do. False is a safe answer."""
    waiting: list[str] = []  # ids of calls whose results come next, the last first
    seen: set[str] = set()
    before: object = None
    for position, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "tool":
            if not waiting or not _is_plain_result(message, waiting.pop()):
                return False
        elif waiting or not _may_follow(role, before, position, profile):
            return False
        elif "tool_calls" in message:
            if not with_tools or not _is_plain_turn(message, seen, profile):
                return False
            waiting = [call["id"] for call in reversed(message["tool_calls"])]
        elif not _is_plain_text(message):
            return False
        before = role
    return not waiting and (before != "assistant" or profile.prefill == "accepted")


def _may_follow(role: object, before: object, position: int, profile: Profile) -> bool:
    if role == "user":
        return before != "tool" or not profile.assistant_after_tools
    if role == "assistant":
        return True
    return role == "system" and (position == 0 or profile.system == "anywhere")


def _is_plain_text(message: Message) -> bool:
    content = message.get("content")
    if len(message) != 2:
        return False
    if isinstance(content, str):
        return bool(content) and not content.isspace()
    return message["role"] == "user" and isinstance(content, list) and _has_no_blank(content)


def _has_no_blank(parts: list[Any]) -> bool:
    return bool(parts) and not any(
        isinstance(part, dict) and part.get("type") == "text" and not str(part.get("text")).strip()
        for part in parts
    )


def _is_plain_result(message: Message, identity: str) -> bool:
    content = message.get("content")
    return (
        message.keys() == _TOOL_KEYS
        and message["tool_call_id"] == identity
        and isinstance(content, str)
        and bool(content.strip())
    )


def _is_plain_turn(message: Message, seen: set[str], profile: Profile) -> bool:
    if profile.tool_name or profile.reasoning_with_tools or profile.foreign_signature:
        return False
    content, calls = message.get("content"), message["tool_calls"]
    if message.keys() != _TURN_KEYS or not isinstance(calls, list) or not calls:
        return False
    if content is not None and not (isinstance(content, str) and content.strip()):
        return False
    pattern = id_pattern(profile)
    for call in calls:
        if not isinstance(call, dict) or not _is_plain_call(call):
            return False
        if call["id"] in seen or not pattern.fullmatch(call["id"]):
            return False
        seen.add(call["id"])
    return True


def _is_plain_call(call: dict[str, Any]) -> bool:
    function = call.get("function")
    return (
        call.keys() == _CALL_KEYS
        and isinstance(call["id"], str)
        and call["type"] == "function"
        and isinstance(function, dict)
        and function.keys() == _FUNCTION_KEYS
        and isinstance(function["name"], str)
        and TOOL_NAME.fullmatch(function["name"]) is not None
        and isinstance(function["arguments"], str)
        and is_object_text(function["arguments"])
    )
