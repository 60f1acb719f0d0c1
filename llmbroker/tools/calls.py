"""The calls of one assistant turn: as they are run, and as they go into the history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson
from uuid_utils import uuid7

from llmbroker.models import Message, Usage
from llmbroker.text import storable_json
from llmbroker.tools.arguments import is_sound, parse_arguments

_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")

CUT_OFF = (
    "the arguments were cut off, because the answer reached its token limit."
    " Call again with shorter arguments, or do it in several calls."
)


class ToolReply(Protocol):
    """What the loop needs of a reply: its text, and the tool calls that it asks for."""

    @property
    def text(self) -> str: ...

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None: ...

    @property
    def usage(self) -> Usage | None: ...


@dataclass(slots=True)
class ToolCall:
    """One call that the model asked for.

    ``arguments`` is an object ready to be passed on, or None: then ``problem`` says what to
    tell the model instead of running anything. ``arguments_text`` is always valid JSON, since
    an unparsable text in the history would make every later turn a 400.
    """

    id: str
    name: str
    arguments_text: str
    arguments: dict[str, Any] | None
    problem: str | None = None

    @property
    def key(self) -> bytes:
        """The same for calls of one name with the same arguments, however these are written."""
        given = [self.name, self.arguments if self.arguments is not None else self.problem]
        try:
            return orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
        except TypeError:
            return orjson.dumps(storable_json(given), option=orjson.OPT_SORT_KEYS)


def read_calls(reply: ToolReply, taken: set[str], *, cut: bool) -> list[ToolCall]:
    """The calls of ``reply``, with ids that no call in ``taken`` has; then they are taken.

    ``cut`` says that the answer ended at its token limit: what cannot be read was cut off.
    """
    calls = [_tool_call(raw, _identity(raw, taken)) for raw in reply.tool_calls or ()]
    if not cut:
        return calls
    whole = [each if each.arguments is not None else with_problem(each, CUT_OFF) for each in calls]
    if whole and whole[-1].arguments == {}:
        whole[-1] = with_problem(whole[-1], CUT_OFF)  # the cut came before its first argument
    return whole


def is_cut(reply: ToolReply, max_completion_tokens: int | None) -> bool:
    """Whether the answer ended because of its token limit."""
    if getattr(reply, "finish_reason", None) == "length":
        return True
    used = reply.usage.completion_tokens if reply.usage else None
    return used is not None and max_completion_tokens is not None and used >= max_completion_tokens


def bounded(calls: Sequence[ToolCall], limit: int) -> list[ToolCall]:
    """``calls``, of which those beyond ``limit`` are not to be run."""
    problem = f"at most {limit} tools are run in one turn"
    return [*calls[:limit], *(with_problem(call, problem) for call in calls[limit:])]


def call_in_history(raw: dict[str, Any]) -> ToolCall:
    """A call as ``assistant_message`` wrote it."""
    return _tool_call(raw, raw["id"])


def assistant_message(reply: ToolReply, calls: Sequence[ToolCall]) -> Message:
    """The turn as it goes into the history: extra fields kept, ids unique, arguments valid JSON."""
    message: Message = dict(getattr(reply, "message", None) or {"role": "assistant"})
    message["content"] = reply.text or None
    message["tool_calls"] = [
        _history_call(raw, call) for raw, call in zip(reply.tool_calls or [], calls, strict=True)
    ]
    return message


def ids_in(messages: Sequence[Message]) -> set[str]:
    """The ids of all calls in a history."""
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    return {call["id"] for call in calls if call.get("id")}


def with_problem(call: ToolCall, problem: str) -> ToolCall:
    """``call`` marked as not to be run, with what to tell the model."""
    return replace(call, arguments=None, problem=problem)


def wire_name(name: str) -> str:
    """``name`` as providers accept it in a history: 1–64 letters, digits, ``_`` and ``-``."""
    if _WIRE_NAME.fullmatch(name):
        return name
    return _UNFIT.sub("_", name)[:64].strip("_") or "unknown"


def _identity(raw: dict[str, Any], taken: set[str]) -> str:
    identity = raw.get("id")
    if not isinstance(identity, str) or not identity or identity in taken:
        identity = f"call_{uuid7().hex}"
    taken.add(identity)
    return identity


def _tool_call(raw: dict[str, Any], identity: str) -> ToolCall:
    function = raw.get("function")
    function = function if isinstance(function, dict) else {}
    name = function.get("name")
    given = function.get("arguments")
    arguments, problem = parse_arguments(given)
    if is_sound(given) and arguments is not None:
        text = given.strip()
    else:
        text = orjson.dumps(storable_json(arguments or {})).decode()
    return ToolCall(identity, name if isinstance(name, str) else "", text, arguments, problem)


def _history_call(raw: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    function = raw.get("function")
    return {
        **raw,
        "id": call.id,
        "type": "function",
        "function": {
            **(function if isinstance(function, dict) else {}),
            "name": wire_name(call.name),
            "arguments": call.arguments_text,
        },
    }
