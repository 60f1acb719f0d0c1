"""Filters the fields of a message: what a provider gave goes back to it, and to no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmbroker.models import Message
from llmbroker.wire.profiles import Profile

_STANDARD = {
    "assistant": frozenset({"role", "content", "name", "tool_calls"}),
    "tool": frozenset({"role", "content", "name", "tool_call_id"}),
}
_STANDARD_ELSE = frozenset({"role", "content", "name"})
_STANDARD_CALL = frozenset({"id", "type", "function"})
_STANDARD_FUNCTION = frozenset({"name", "arguments"})
_NEVER_SENT = frozenset({"x_origin", "index", "annotations"})


def with_fields_for(message: Message, profile: Profile, origin: str) -> Message:
    """``message`` with the fields that ``origin`` takes, as a new object."""
    sender = message.get("x_origin")
    keeps = _Keeps(profile, is_own=sender == origin, is_foreign=sender not in (None, origin))
    role = message["role"]
    standard = _STANDARD.get(role, _STANDARD_ELSE)
    copy = keeps.filtered(message, standard)
    if role == "developer" and not profile.developer_role:
        copy["role"] = "system"
    if not profile.message_name and role != "tool":
        copy.pop("name", None)
    if "tool_calls" in copy:
        copy["tool_calls"] = [_call_for(call, keeps) for call in copy["tool_calls"]]
        if profile.foreign_signature:
            _sign(copy["tool_calls"][0], profile.foreign_signature)
        if profile.reasoning_with_tools:
            copy.setdefault(profile.reasoning_with_tools, "")
    return copy


class _Keeps:
    """Which extra fields of one message go to the provider at hand."""

    def __init__(self, profile: Profile, *, is_own: bool, is_foreign: bool) -> None:
        self._profile = profile
        self._is_own = is_own
        self._is_foreign = is_foreign

    def filtered(self, fields: Mapping[str, Any], standard: frozenset[str]) -> dict[str, Any]:
        return {
            key: value
            for key, value in fields.items()
            if key in standard or (self._keeps(key) and value is not None)
        }

    def _keeps(self, key: str) -> bool:
        if key in _NEVER_SENT or self._is_foreign:
            return False
        return key in self._profile.own_fields or (self._is_own and self._profile.echo_unknown)


def _call_for(call: Mapping[str, Any], keeps: _Keeps) -> dict[str, Any]:
    copy = keeps.filtered(call, _STANDARD_CALL)
    copy["function"] = keeps.filtered(call["function"], _STANDARD_FUNCTION)
    return copy


def _sign(call: dict[str, Any], signature: str) -> None:
    """Mark a turn's first call, unless it is signed: then no model that signs has made it."""
    call.setdefault("extra_content", {"google": {"thought_signature": signature}})
