"""Reads the tool calls of an assistant message into OpenAI's shape, with ids that are unique."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from llmbroker.text import storable_json
from llmbroker.wire.lenient_json import loads

_CALL_KEYS = frozenset({"id", "type", "function", "index", "name", "arguments"})
_FUNCTION_KEYS = frozenset({"name", "arguments"})


def read_tool_calls(message: Mapping[str, Any], *, seed: str) -> list[dict[str, Any]]:
    """The calls in a whole ``message``; ``seed`` makes the ids that have to be made.

    A provider's own id is kept unless an earlier call has it. Arguments are always text.
    """
    taken: set[str] = set()
    calls: list[dict[str, Any]] = []
    for raw in raw_calls(message):
        function = function_of(raw)
        name = function.get("name")
        calls.append(
            {
                "id": unique_id(raw.get("id"), taken, seed=f"{seed}/{len(calls)}"),
                "type": "function",
                "function": {
                    "name": name if isinstance(name, str) else "",
                    "arguments": arguments_text(function.get("arguments")),
                    **function_extras(function),
                },
                **call_extras(raw),
            }
        )
    return calls


def function_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ``function`` of a call or of a fragment; some servers put its fields beside the id."""
    function = call.get("function")
    return function if isinstance(function, dict) else call


def call_extras(call: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's own fields of a call, such as Gemini's ``extra_content``."""
    return {key: value for key, value in call.items() if key not in _CALL_KEYS and value}


def function_extras(function: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's own fields of a call's function."""
    if function.keys() & {"id", "type", "index"}:
        return {}  # the fields stand beside the id: they are the call's
    return {key: value for key, value in function.items() if key not in _FUNCTION_KEYS and value}


def raw_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message or delta as they stand there, also one in the old form."""
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        return [call for call in calls if isinstance(call, dict)]
    legacy = message.get("function_call")
    return [{"function": legacy}] if isinstance(legacy, dict) else []


def unique_id(raw: object, taken: set[str], *, seed: str) -> str:
    """``raw`` if it is an id not yet ``taken``, else one made from ``seed``; then it is taken."""
    identity = raw if isinstance(raw, str) and raw.strip() else ""
    attempt = 0
    while not identity or identity in taken:
        digest = hashlib.sha256(f"{seed}/{attempt}".encode("utf-8", "replace"))
        identity = f"call_{digest.hexdigest()[:24]}"
        attempt += 1
    taken.add(identity)
    return identity


def arguments_text(raw: object) -> str:
    """Arguments as the text that OpenAI's shape demands; nothing at all is an empty object.

    >>> arguments_text({"city": "Oslo"}), arguments_text(None), arguments_text(" ")
    ('{"city":"Oslo"}', '{}', '{}')
    """
    if isinstance(raw, str):
        return raw if raw.strip() else "{}"
    return "{}" if raw is None else orjson.dumps(storable_json(raw)).decode()


def sendable_arguments(raw: object) -> str:
    """Arguments for a history: ``raw`` itself if it is the text of an object, else made so.

    What holds no object becomes an empty one: broken arguments make every later turn a 400.
    """
    if isinstance(raw, str) and is_object_text(raw):
        return raw
    value = arguments_object(raw)
    return "{}" if value is None else orjson.dumps(storable_json(value)).decode()


def is_object_text(text: str) -> bool:
    """Whether ``text`` is strict JSON and an object."""
    try:
        return isinstance(orjson.loads(text), dict)
    except (orjson.JSONDecodeError, TypeError):
        return False


def arguments_object(text: object) -> dict[str, Any] | None:
    """The object that arguments hold, also where they were encoded twice; None if they do not."""
    value = text
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = loads(value)
            except ValueError:
                return None
    return value if isinstance(value, dict) else None
