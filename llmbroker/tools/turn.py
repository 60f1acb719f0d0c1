"""The calls of one turn, run at the same time, each within its time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from llmbroker.tools.calls import ToolCall
from llmbroker.tools.capping import MAX_RESULT_CHARS
from llmbroker.tools.context import ToolContext
from llmbroker.tools.execution import refusal, run_here
from llmbroker.tools.loop import ToolLoop
from llmbroker.tools.outcomes import INTERRUPTED, NOT_RUN, ToolStatus, failure
from llmbroker.tools.steps import ToolResult
from llmbroker.tools.toolbox import Runnable, Toolbox
from llmbroker.tools.work import result_of, settled
from llmbroker.tools.workers import run_coroutine

MAX_TOOL_CONCURRENCY = 8


@dataclass(slots=True, kw_only=True)
class Runner:
    """How the tools of one loop are run; ``timeout`` is for tools that have none of their own."""

    loop: ToolLoop
    toolbox: Toolbox
    scope: str | None = None
    max_concurrency: int = MAX_TOOL_CONCURRENCY
    timeout: float | None = None
    max_result_chars: int = MAX_RESULT_CHARS

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise ValueError(f"max_tool_concurrency is at least 1, got {self.max_concurrency}")

    def run(self, calls: Sequence[ToolCall]) -> None:
        """Run ``calls`` and record a result for each, also when it is cut short."""
        if not calls:
            return
        turn = _Turn(self)
        try:
            if len(calls) == 1 and turn.may_run_here(calls[0]):
                turn.run_here(calls[0])
            else:
                run_coroutine(turn.run(calls))
        finally:
            turn.record(calls)

    async def arun(self, calls: Sequence[ToolCall]) -> None:
        """``run`` for async code."""
        if not calls:
            return
        turn = _Turn(self)
        try:
            await turn.run(calls)
        finally:
            turn.record(calls)


class _Turn:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._results: dict[str, ToolResult] = {}
        self._begun: set[str] = set()

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run all; sequential tools go through one lane, in the order asked."""
        if len(calls) == 1:
            await self._run_one(calls[0])
            return
        slots, lane = asyncio.Semaphore(self._runner.max_concurrency), asyncio.Lock()
        await asyncio.gather(*(self._run_in_turn(call, slots, lane) for call in calls))

    def run_here(self, call: ToolCall) -> None:
        """Run a call in this thread."""
        self._begun.add(call.id)
        runner = self._runner
        context = self._context(call, None)
        self._results[call.id] = run_here(call, runner.toolbox, context, runner.max_result_chars)

    def may_run_here(self, call: ToolCall) -> bool:
        """Whether nothing asks for a thread: no time to keep, no event loop to run on."""
        tool = self._runner.toolbox.find(call.name)
        return tool is None or (not tool.is_async and self._time_for(tool) is None)

    def record(self, calls: Sequence[ToolCall]) -> None:
        """Give the loop a result for every call."""
        for call in calls:
            result = self._results.get(call.id) or self._cut_short(call)
            self._runner.loop.record(call, result.text, result.status)

    async def _run_in_turn(
        self, call: ToolCall, slots: asyncio.Semaphore, lane: asyncio.Lock
    ) -> None:
        tool = self._runner.toolbox.find(call.name)
        if tool is not None and tool.sequential:
            async with lane, slots:
                await self._run_one(call)
        else:
            async with slots:
                await self._run_one(call)

    async def _run_one(self, call: ToolCall) -> None:
        tool = self._runner.toolbox.find(call.name)
        if tool is None or call.arguments is None:
            self._results[call.id] = refusal(call, self._runner.toolbox)
            return
        seconds = self._time_for(tool)
        self._begun.add(call.id)
        work = await settled(tool, call, self._context(call, seconds), seconds)
        self._results[call.id] = result_of(call, work, seconds, self._runner.max_result_chars)

    def _cut_short(self, call: ToolCall) -> ToolResult:
        problem = INTERRUPTED if call.id in self._begun else NOT_RUN
        return ToolResult(call, failure(call.name, problem), ToolStatus.INTERRUPTED)

    def _time_for(self, tool: Runnable) -> float | None:
        own = tool.timeout if tool.timeout is not None else self._runner.timeout
        left = self._runner.loop.seconds_left
        return min((each for each in (own, left) if each is not None), default=None)

    def _context(self, call: ToolCall, seconds: float | None) -> ToolContext:
        run_id = self._runner.loop.run_id
        return ToolContext(
            run_id=run_id,
            scope=self._runner.scope,
            tool_call_id=call.id,
            idempotency_key=f"{run_id}:{call.id}",
            deadline=None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds),
        )
