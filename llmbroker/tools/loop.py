"""The tool loop as an object without I/O: stepped by a script, or by a worker with a store.

A caller sends ``messages``, gives the reply to ``receive``, runs the calls that come back and
gives each result to ``record``; that is one step. Nothing here knows how a model is reached
or how a tool runs, so the same object serves sync code, async code and durable runs.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson
from uuid_utils import uuid7

from llmbroker.errors import ToolLoopLimitError
from llmbroker.models import Message, ToolSchema, Usage
from llmbroker.tools.arguments import parse_arguments

_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class ToolReply(Protocol):
    """What the loop needs of a reply: its text, and the tool calls that it asks for."""

    @property
    def text(self) -> str: ...

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None: ...

    @property
    def usage(self) -> Usage | None: ...


@dataclass(frozen=True, slots=True)
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


class ToolLoop:
    """A conversation that goes on until the model answers without asking for a tool."""

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSchema] | None = None,
        max_steps: int = 8,
    ) -> None:
        """Start from ``messages``, which are copied and never changed.

        Raises ValueError if ``max_steps`` is below 1.
        """
        if max_steps < 1:
            raise ValueError(f"max_steps is at least 1, got {max_steps}")
        self.messages: list[Message] = list(messages)
        self.tools = list(tools) if tools else None
        self.max_steps = max_steps
        self.steps_taken = 0
        self.run_usage: Usage | None = None
        self.reply: Any = None
        self._open: dict[str, ToolCall] = {}
        self._results: dict[str, str] = {}
        self._ids = {call["id"] for call in _calls_in(self.messages) if call.get("id")}

    @property
    def done(self) -> bool:
        """Whether the model has given its final answer, which is then in ``reply``."""
        return self.reply is not None

    @property
    def pending(self) -> list[ToolCall]:
        """The calls that still have no result, in the order asked."""
        return [call for call in self._open.values() if call.id not in self._results]

    @property
    def exhausted(self) -> bool:
        """Whether the model still wants tools though ``max_steps`` calls have been made."""
        return not self.done and not self._open and self.steps_taken >= self.max_steps

    def receive(self, reply: ToolReply) -> list[ToolCall]:
        """Take the model's reply to ``messages``; returns the tool calls to run.

        Raises RuntimeError when called out of turn.
        """
        if self.done or self._open:
            raise RuntimeError("receive() is out of turn: the loop is done or waits for results")
        self.steps_taken += 1
        usage = reply.usage
        if usage is not None:
            self.run_usage = usage if self.run_usage is None else self.run_usage + usage
        if not reply.tool_calls:
            self.reply = reply
            return []
        calls = [self._read(raw) for raw in reply.tool_calls]
        self.messages.append(_assistant_message(reply, calls))
        self._open = {call.id: call for call in calls}
        return calls

    def record(self, call: ToolCall, result: str) -> None:
        """Take the result of one call. The turn closes when every call has one.

        Raises KeyError for a call that is not open.
        """
        if call.id not in self._open:
            raise KeyError(call.id)
        self._results[call.id] = result
        if len(self._results) == len(self._open):
            self.messages += [
                {"role": "tool", "tool_call_id": identity, "content": self._results[identity]}
                for identity in self._open
            ]
            self._open, self._results = {}, {}

    def limit_error(self) -> ToolLoopLimitError:
        """The error of an exhausted loop, with the conversation and its usage."""
        return ToolLoopLimitError(
            f"the model still asked for tools after max_steps={self.max_steps} calls;"
            " raise max_steps, or catch ToolLoopLimitError and use its .messages",
            messages=list(self.messages),
            run_usage=self.run_usage,
        )

    def state(self) -> dict[str, Any]:
        """The loop between two steps or inside one, as JSON."""
        return {
            "messages": copy.deepcopy(self.messages),
            "tools": copy.deepcopy(self.tools),
            "max_steps": self.max_steps,
            "steps_taken": self.steps_taken,
            "run_usage": self.run_usage.as_dict() if self.run_usage else None,
            "results": dict(self._results),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ToolLoop:
        """The loop that gave ``state``, ready to go on. A finished loop has no state to resume."""
        loop = cls(state["messages"], tools=state["tools"], max_steps=state["max_steps"])
        loop.steps_taken = state["steps_taken"]
        loop.run_usage = Usage(**state["run_usage"]) if state["run_usage"] else None
        if loop.messages and loop.messages[-1].get("tool_calls"):
            loop._open = {
                raw["id"]: _tool_call(raw, raw["id"]) for raw in loop.messages[-1]["tool_calls"]
            }
            loop._results = dict(state["results"])
        return loop

    def _read(self, raw: dict[str, Any]) -> ToolCall:
        identity = raw.get("id")
        if not isinstance(identity, str) or not identity or identity in self._ids:
            identity = f"call_{uuid7().hex}"
        self._ids.add(identity)
        return _tool_call(raw, identity)


def _tool_call(raw: dict[str, Any], identity: str) -> ToolCall:
    function = raw.get("function")
    function = function if isinstance(function, dict) else {}
    name = function.get("name")
    given = function.get("arguments")
    arguments, problem = parse_arguments(given)
    if isinstance(given, str) and given.lstrip().startswith("{") and arguments is not None:
        text = given.strip()
    else:
        text = orjson.dumps(arguments or {}).decode()
    return ToolCall(identity, name if isinstance(name, str) else "", text, arguments, problem)


def _assistant_message(reply: ToolReply, calls: list[ToolCall]) -> Message:
    """The turn as it goes into the history: extra fields kept, ids unique, arguments valid JSON."""
    message: Message = dict(getattr(reply, "message", None) or {"role": "assistant"})
    message["content"] = reply.text or None
    message["tool_calls"] = [
        _history_call(raw, call) for raw, call in zip(reply.tool_calls or [], calls, strict=True)
    ]
    return message


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


def wire_name(name: str) -> str:
    """``name`` as providers accept it in a history: 1–64 letters, digits, ``_`` and ``-``."""
    if _WIRE_NAME.fullmatch(name):
        return name
    return _UNFIT.sub("_", name)[:64].strip("_") or "unknown"


def _calls_in(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def with_problem(call: ToolCall, problem: str) -> ToolCall:
    """``call`` marked as not to be run, with what to tell the model."""
    return replace(call, arguments=None, problem=problem)
