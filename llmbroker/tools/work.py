"""One tool at work: begun, waited for within its time, and left behind when that is over."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import Any

from llmbroker.tools.calls import ToolCall
from llmbroker.tools.capping import MAX_RESULT_CHARS
from llmbroker.tools.context import ToolContext
from llmbroker.tools.execution import awaited, outcome, value_of
from llmbroker.tools.outcomes import TIMED_OUT, ToolStatus, failure
from llmbroker.tools.steps import ToolResult
from llmbroker.tools.toolbox import Runnable
from llmbroker.tools.workers import in_thread

_abandoned: set[asyncio.Future[Any]] = set()
"""Tools that nobody waits for any more; the event loop itself would forget them half-way."""


async def settled(
    tool: Runnable, call: ToolCall, context: ToolContext, seconds: float | None
) -> asyncio.Future[Any]:
    """The tool's work once it is done or ``seconds`` are over; cancelling leaves it behind.

    A thread has its future already, which hears at once that the run is cancelled. What runs on
    the event loop needs a task: without one it would be waited for when it ignores that.
    """
    if tool.is_async or seconds is not None:
        return await _waited_for(asyncio.ensure_future(value_of(tool, call, context)), seconds)
    work = in_thread(tool.invoke, call.arguments or {}, context, function=tool.function)
    with suppress(Exception):  # what the tool raised is read off its future
        await work
    if work.cancelled() or work.exception() or not inspect.isawaitable(work.result()):
        return work
    return await _waited_for(asyncio.ensure_future(awaited(work.result())), None)


def result_of(
    call: ToolCall,
    work: asyncio.Future[Any],
    seconds: float | None,
    limit: int = MAX_RESULT_CHARS,
) -> ToolResult:
    """What the model is told of work that has settled."""
    if not work.done():
        text = failure(call.name, TIMED_OUT.format(seconds=seconds))
        return ToolResult(call, text, ToolStatus.TIMEOUT)
    if work.cancelled() or isinstance(work.exception(), asyncio.CancelledError):
        text = failure(call.name, "the tool cancelled itself")
        return ToolResult(call, text, ToolStatus.FAILED)
    return outcome(call, work.result, limit)


async def _waited_for(work: asyncio.Future[Any], seconds: float | None) -> asyncio.Future[Any]:
    try:
        await _done(work, seconds)
    finally:
        if not work.done():
            _abandon(work)
    return work


async def _done(work: asyncio.Future[Any], seconds: float | None) -> None:
    """Wait for ``work`` without being bound to it: asyncio.wait for one task, at a third of
    its cost."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    work.add_done_callback(wake)
    timer = None if seconds is None else loop.call_later(seconds, wake)
    try:
        await waiter
    finally:
        work.remove_done_callback(wake)
        if timer is not None:
            timer.cancel()


def _abandon(work: asyncio.Future[Any]) -> None:
    """Cancel without waiting: a tool may ignore it, and a thread cannot hear it."""
    _abandoned.add(work)
    work.add_done_callback(_forget)
    work.cancel()


def _forget(work: asyncio.Future[Any]) -> None:
    _abandoned.discard(work)
    if not work.cancelled():
        work.exception()  # looked at, so that nothing is logged of it
