"""From what is recorded of a run to where it stands: nothing that has happened happens again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import orjson

from agents.models import Run, Step
from agents.tool_registry import ToolRegistry
from llmbroker import Reply, ToolCall, ToolLoop, Usage
from llmbroker.models import Message
from llmbroker.text import clip, storable, storable_json


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply as its step holds it, so that a resumed run says the same to the next model."""

    message: Message
    usage: Usage | None
    finish_reason: str | None

    @property
    def text(self) -> str:
        """What the model said."""
        return self.message.get("content") or ""

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None:
        """What it asked for."""
        return self.message.get("tool_calls") or None

    @classmethod
    def of_reply(cls, reply: Reply) -> RecordedReply:
        """A fresh reply, made storable before anything else is done with it."""
        message = cast("Message", storable_json(reply.message))
        reason = reply.finish_reason and clip(storable(reply.finish_reason), 50)
        return cls(message, reply.usage, reason)

    @classmethod
    def of_step(cls, step: Step) -> RecordedReply:
        """The reply that a finished model call brought."""
        usage = Usage(**step.usage) if step.usage else None
        return cls(step.message or {}, usage, step.finish_reason)


@dataclass(slots=True)
class Position:
    """Where a run stands: its loop, the steps that are reserved or waiting, and the next number."""

    loop: ToolLoop
    open: deque[Step]
    next_number: int

    def next_step(self, run_id: UUID) -> Step:
        """The step that comes now: one that is open, else a new call of the model."""
        if self.open:
            return self.open.popleft()
        self.next_number += 1
        return Step(run_id=run_id, number=self.next_number - 1, kind=Step.Kind.MODEL_CALL)


def position_of(run: Run, steps: Iterable[Step], tools: ToolRegistry) -> Position:
    """The position after all recorded ``steps``, which come in the order of their numbers."""
    schemas = [tool.schema for tool in tools.values()]
    loop = ToolLoop(run.messages, tools=schemas, max_steps=run.max_steps)
    position = Position(loop, deque(), next_number=1)
    for step in steps:
        position.next_number = step.number + 1
        if step.status in Step.OPEN:
            position.open.append(step)
        elif step.kind == Step.Kind.MODEL_CALL:
            loop.receive(RecordedReply.of_step(step))
        else:
            loop.record(call_of(step), step.result or "")
    return position


def call_of(step: Step) -> ToolCall:
    """The call that a tool step holds. Without arguments its error says why it is not to be run."""
    return ToolCall(
        id=step.tool_call_id or "",
        name=step.name or "",
        arguments_text=orjson.dumps(step.arguments or {}).decode(),
        arguments=step.arguments,
        problem=step.error["message"] if step.arguments is None and step.error else None,
    )
