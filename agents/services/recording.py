"""What happens to a run, as rows and events: what is reserved before it is done, and recorded
after. One checkpoint may record what has ended and reserve what comes next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from uuid import UUID

from django.utils import timezone

from agents.models import Run, Step
from agents.services.checkpoints import Checkpoint
from agents.services.closing import close_unfinished
from agents.services.events import Happening, answered, asked_for, began, left, replied
from agents.services.leases import LEASE, Lease
from agents.services.ledger import Ledger
from agents.services.outcomes import Outcome
from agents.services.replay import Position, RecordedReply
from llmbroker import ToolCall, ToolResult, ToolStatus, Usage
from llmbroker.reply import RoutedReply
from llmbroker.text import clip, storable_json

# A failure is reported as one even to whoever was just cancelling; success is not.
_STANDS_BESIDE_CANCEL = (Run.Status.CANCELLED, Run.Status.FAILED)


class Record:
    """What one worker has still to write of one run. What was refused stays to be written."""

    def __init__(self, lease: Lease, ledger: Ledger) -> None:
        self.lease = lease
        self._ledger = ledger
        self._steps: dict[UUID, Step] = {}
        self._news: list[Happening] = []
        self._usage: dict[str, int | None] | None = None
        self._writing = asyncio.Lock()
        self._ours_until = 0.0

    def reply(self, step: Step, reply: RoutedReply, position: Position) -> None:
        """The model's reply, and the tool calls that it asks for as steps that wait."""
        recorded = RecordedReply.of_reply(reply)
        calls = position.loop.receive(recorded)
        step.message = dict(recorded.with_ids_of(calls).message)
        step.llm_name = clip(reply.llm_name, 200)
        step.call_id = UUID(reply.call_id)
        step.finish_reason = recorded.finish_reason
        step.usage = _figures(recorded.usage)
        step.cost_micros = recorded.cost_micros
        _close(step, Step.Status.COMPLETED)
        position.open.remove(step)
        asked = [
            _tool_step(self.lease.run_id, number, call)
            for number, call in enumerate(calls, start=position.next_number)
        ]
        position.next_number += len(asked)
        position.open.extend(asked)
        self._usage = _figures(position.loop.run_usage)
        self._note([step, *asked], replied(step, asked, self._usage, stands=position.loop.done))

    def result(self, step: Step, result: ToolResult, position: Position) -> None:
        """What the model is told of its tool call, and how that ended."""
        step.result = result.text
        step.outcome = result.status
        worked = result.status is ToolStatus.SUCCESS
        _close(step, Step.Status.COMPLETED if worked else Step.Status.FAILED)
        position.open.remove(step)
        position.tool_calls += 1
        position.loop.record(result.call, result.text, result.status)
        self._note([step], answered(step))

    def recovered(self, steps: Sequence[Step]) -> None:
        """Calls whose results are stored already, as the tools' own last act."""
        for step in steps:
            _close(step, Step.Status.COMPLETED)
            self._note([step], answered(step))

    async def write(self) -> bool:
        """Make durable what has been noted. Returns whether the run is being cancelled.

        Raises LeaseLostError.
        """
        return await self._write()

    async def confirm(self) -> bool:
        """Be sure that the run is this worker's still, which may have stood still for a while.

        Returns whether the run is being cancelled, if that was asked for. Raises LeaseLostError.
        """
        is_cancelling = False
        while time.monotonic() >= self._ours_until:
            is_cancelling = await self._write()
        return is_cancelling

    async def reserve(self, steps: Sequence[Step]) -> None:
        """Say that ``steps`` begin now, and make that durable with what has been noted.

        Raises LeaseLostError; CancelRequestedError, where nothing may begin.
        """
        before = [(step, step.status, step.started_at) for step in steps]
        for step in steps:
            step.status, step.started_at = Step.Status.IN_PROGRESS, timezone.now()
            step.attempts += 1
        try:
            await self._write(steps, map(began, steps), during=(Run.Status.IN_PROGRESS,))
        except BaseException:
            for step, status, started_at in before:
                step.status, step.started_at = status, started_at
                step.attempts -= 1
            raise

    async def leave(self, outcome: Outcome, unfinished: Sequence[Step]) -> None:
        """Put the run into the state in which its worker leaves it.

        Raises CancelRequestedError if it was to end well and is being cancelled.
        """
        failed = outcome.status == Run.Status.FAILED
        for step in unfinished if outcome.is_final else ():
            close_unfinished(step, Step.Status.FAILED if failed else Step.Status.CANCELLED)
            step.ended_at = timezone.now()
            step.error = outcome.last_error
        stands = outcome.status in _STANDS_BESIDE_CANCEL or outcome.hands_over
        news = [asked_for(step) for step in unfinished if step.needs == Step.Needs.APPROVAL]
        news += [] if outcome.hands_over else left(outcome)
        during = Run.WORKING if stands else (Run.Status.IN_PROGRESS,)
        await self._write(unfinished, news, during=during, outcome=outcome)

    def _note(self, steps: Sequence[Step], news: Sequence[Happening]) -> None:
        self._steps |= {step.id: step for step in steps}
        self._news += news

    async def _write(
        self,
        steps: Iterable[Step] = (),
        news: Iterable[Happening] = (),
        *,
        during: Sequence[str] = Run.WORKING,
        outcome: Outcome | None = None,
    ) -> bool:
        """One checkpoint of what was noted and of what is given; one after the other, since
        tools that run side by side end side by side."""
        async with self._writing:
            asked, noted, usage = time.monotonic(), [*self._news], self._usage
            written = {**self._steps, **{step.id: step for step in steps}}
            is_cancelling = await self._ledger.write(
                Checkpoint(
                    lease=self.lease,
                    steps=list(written.values()),
                    news=[*noted, *news],
                    usage=usage,
                    during=during,
                    outcome=outcome,
                )
            )
            self._ours_until = asked + LEASE
            self._steps = {key: step for key, step in self._steps.items() if key not in written}
            del self._news[: len(noted)]
            self._usage = None if self._usage is usage else self._usage
        return is_cancelling


def _close(step: Step, status: Step.Status) -> None:
    step.status = status
    step.ended_at = timezone.now()


def _figures(usage: Usage | None) -> dict[str, int | None] | None:
    return usage.as_dict() if usage is not None else None


def _tool_step(run_id: UUID, number: int, call: ToolCall) -> Step:
    return Step(
        run_id=run_id,
        number=number,
        kind=Step.Kind.TOOL_CALL,
        status=Step.Status.QUEUED,
        tool_call_id=call.id,
        name=call.name,
        arguments=storable_json(call.arguments),
    )
