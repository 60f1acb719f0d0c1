"""From what is recorded of a run to where it stands: nothing that has happened happens again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

from agents.models import Run, Step
from agents.services.leases import LEASE
from agents.structured import review_of
from agents.tool_registry import ToolRegistry
from llmbroker import ToolCall, ToolLoop, ToolStatus, Usage
from llmbroker.models import Message
from llmbroker.reply import RoutedReply
from llmbroker.text import clip, storable, storable_json


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply as its step holds it. Given to a loop again, it leads to the same state."""

    message: Message
    usage: Usage | None
    finish_reason: str | None
    cost_micros: int | None = None

    @property
    def text(self) -> str:
        """What the model said."""
        return self.message.get("content") or ""

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None:
        """What it asked for."""
        return self.message.get("tool_calls") or None

    @classmethod
    def of_reply(cls, reply: RoutedReply) -> RecordedReply:
        """A fresh reply, made storable before anything else is done with it."""
        message = cast("Message", storable_json(reply.message))
        reason = reply.finish_reason and clip(storable(reply.finish_reason), 50)
        return cls(message, reply.usage, reason, reply.cost_micros)

    @classmethod
    def of_step(cls, step: Step) -> RecordedReply:
        """The reply that a finished model call brought."""
        usage = Usage(**step.usage) if step.usage else None
        return cls(step.message or {}, usage, step.finish_reason, step.cost_micros)

    def with_ids_of(self, calls: list[ToolCall]) -> RecordedReply:
        """The reply with the ids that the loop gave its calls, where the model's would not do."""
        if not calls:
            return self
        asked = zip(self.tool_calls or (), calls, strict=True)
        tool_calls = [{**raw, "id": call.id} for raw, call in asked]
        return replace(self, message={**self.message, "tool_calls": tool_calls})


@dataclass(slots=True)
class Position:
    """Where a run stands: its loop, the steps that have not ended, and the next number."""

    run: Run
    loop: ToolLoop
    open: list[Step]
    next_number: int = 1
    tool_calls: int = 0
    """How many calls of tools have ended."""
    recovered: list[Step] = field(default_factory=list)
    """Calls that recorded their result with their effect, before their worker was lost."""

    def due(self) -> list[Step]:
        """The steps that come now: those that are open, else a new call of the model."""
        if not self.open:
            self.open.append(
                Step(run_id=self.run.id, number=self.next_number, kind=Step.Kind.MODEL_CALL)
            )
            self.next_number += 1
        return list(self.open)

    @property
    def unfinished(self) -> list[Step]:
        """The open steps that anybody but this worker knows of."""
        return [step for step in self.open if step.status]

    def call_of(self, step: Step) -> ToolCall:
        """What the model asked for in a tool step that is open."""
        return next(call for call in self.loop.pending if call.id == step.tool_call_id)


def position_of(run: Run, steps: Iterable[Step], tools: ToolRegistry) -> Position:
    """The position after all recorded ``steps``, which come in the order of their numbers."""
    loop = ToolLoop(
        run.messages,
        tools=tools.toolbox.schemas,
        max_steps=run.max_steps,
        max_tokens=run.max_tokens,
        max_cost=None if run.max_cost is None else float(run.max_cost),
        cost_of=_cost_of,
        deadline=_time_left(run),
        final_answer=run.final_answer,
        review=review_of(run.output_schema),
        run_id=str(run.id),
    )
    position = Position(run, loop, [])
    for step in steps:
        position.next_number = step.number + 1
        has_result = step.kind == Step.Kind.TOOL_CALL and step.result is not None
        if step.status in Step.OPEN and not has_result:
            position.open.append(step)
        elif step.kind == Step.Kind.MODEL_CALL:
            loop.receive(RecordedReply.of_step(step))
        else:
            status = ToolStatus(step.outcome or ToolStatus.INTERRUPTED)
            loop.record(position.call_of(step), step.result or "", status)
            position.tool_calls += 1
            if step.status in Step.OPEN:
                position.recovered.append(step)
    return position


def _cost_of(reply: RecordedReply) -> float | None:
    return None if reply.cost_micros is None else reply.cost_micros / 1_000_000


def _time_left(run: Run) -> timedelta | None:
    """Until the run's time is up, by the database's clock, which has just set the lease."""
    if run.max_seconds is None or run.started_at is None or run.lease_until is None:
        return None
    now = run.lease_until - timedelta(seconds=LEASE)
    return run.started_at + timedelta(seconds=run.max_seconds) - now
