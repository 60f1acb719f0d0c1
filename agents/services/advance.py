"""A run's way from claimed to over: model call, its tool calls, model call, until an answer.

Before each call it is reserved, after each it is recorded; so whoever takes the run over goes
on from the last record. All of it is one task of an event loop, which may have thousands: no
thread and no database connection is held while a model is at work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from enum import IntEnum
from functools import partial
from threading import Event
from typing import Any, Protocol, TypeVar

from django.db import Error

from agents.models import Run, Step
from agents.services.asking import asked_of_models
from agents.services.dispatch import Claimed
from agents.services.failures import failure_of
from agents.services.leases import CancelRequestedError, LeaseLostError
from agents.services.ledger import Ledger
from agents.services.needs import with_client_tools
from agents.services.next_steps import answered, ready_steps, unreserve
from agents.services.outcomes import CANCELLED, HANDED_OVER, PUT_BACK, Outcome
from agents.services.patience import is_patient
from agents.services.recording import Record
from agents.services.replay import Position, position_of
from agents.services.tool_calls import run_tool
from agents.streams.telling import Telling
from agents.tool_registry import ToolRegistry, chosen_of_installed, installed_tools
from llmbroker import ToolResult
from llmbroker.attribution import attributed
from llmbroker.errors import (
    LimitExceededError,
    LLMBrokerError,
    LLMRequestError,
    NoLLMAvailableError,
)
from llmbroker.reply import RoutedReply
from llmbroker.tools.limits import Stop
from llmbroker.tools.turn import MAX_TOOL_CONCURRENCY
from tenants.context import Reach, scope_active

T = TypeVar("T")

log = logging.getLogger(__name__)

Tools = Callable[[Run], ToolRegistry]
"""What a run may use. Called in a database thread unless the installation's tools suffice."""


class Models(Protocol):
    """What a run needs of llmbroker.AsyncBroker."""

    def for_scope(self, scope: str) -> Any:
        """Whoever has an async ``chat`` in the name of ``scope``."""
        ...


class Wish(IntEnum):
    """What is wanted of a run at work: to go on, or to be left. A later one outranks."""

    GO_ON = 0
    PUT_BACK = 1
    """Others wait: queue again at the next boundary."""
    HAND_OVER = 2
    """The worker is being stopped: leave at the next boundary."""
    CUT = 3
    """Leave now; a model call that is under way is given up, and made again elsewhere."""
    CANCEL = 4
    """The run is being cancelled: end what can be ended, account for the rest."""
    LOST = 5
    """Another worker has the run: write and begin nothing more."""


class _InterruptedError(Exception):
    """What was under way was given up, because of the wish."""


class RunAtWork:
    """One run of this process."""

    def __init__(
        self, claimed: Claimed, *, broker: Models, tools: Tools, ledger: Ledger, telling: Telling
    ) -> None:
        self.run, self.lease = claimed.run, claimed.lease
        self.cancellation = Event()
        self._steps = claimed.steps
        self._broker = broker
        self._tools = tools
        self._ledger = ledger
        self._telling = telling
        self._record = Record(claimed.lease, ledger)
        self.wish = Wish.GO_ON
        self._last_answer: Stop | None = None
        self._harmless: set[asyncio.Future[Any]] = set()

    def want(self, wish: Wish) -> None:
        """Say what is wanted of the run from now on. On the event loop's thread only."""
        self.wish = max(wish, self.wish)
        if self.wish >= Wish.CANCEL:
            self.cancellation.set()
        if self.wish >= Wish.CUT:
            for work in self._harmless:
                work.cancel()

    async def advance(self) -> None:
        """Work on the run until it is over, must wait, or is wanted to be left."""
        position = None
        try:
            with scope_active(Reach(self.run.tenant_id, self.run.scope_id)):
                tools = await self._chosen_tools()
                tools = with_client_tools(tools, self.run)
                position = position_of(self.run, self._steps, tools)
                self._record.recovered(position.recovered)
                await self._leave(await self._outcome(position, tools), position)
        except LeaseLostError:
            log.info("run %s has been taken over by another worker", self.run.id)
        except Error:
            raise  # nothing can be written: the lease runs out, and another worker takes the run
        except Exception:
            with suppress(LeaseLostError):
                failed = Outcome.failed("internal_error", "Something went wrong on our side.")
                await self._record.leave(failed, position.unfinished if position else ())
            raise

    async def _chosen_tools(self) -> ToolRegistry:
        if all(name in installed_tools() for name in self.run.tools):
            return chosen_of_installed(tuple(self.run.tools))
        tools = await self._ledger.ask_aside(partial(self._tools, self.run))
        return tools.chosen(self.run.tools)

    async def _leave(self, outcome: Outcome, position: Position) -> None:
        try:
            await self._record.leave(outcome, position.unfinished)
        except CancelRequestedError:
            await self._record.leave(CANCELLED, position.unfinished)

    async def _outcome(self, position: Position, tools: ToolRegistry) -> Outcome:
        answers_before = position.loop.steps_taken
        try:
            return await self._work(position, tools)
        except CancelRequestedError:
            return CANCELLED
        except _InterruptedError:
            return self._left_as_wished(position)
        except TimeoutError:
            return Outcome(Run.Status.INCOMPLETE, incomplete_reason=Run.IncompleteReason.DEADLINE)
        except NoLLMAvailableError as error:
            until, goes_on = error.retry_at, position.loop.steps_taken > answers_before
            if until is None or not (goes_on or is_patient(self.run, self._steps, until)):
                return Outcome(Run.Status.FAILED, last_error=failure_of(error))
            unreserve(position.open)
            return Outcome(Run.Status.QUEUED, due_at=until)
        except (LLMRequestError, LLMBrokerError) as error:
            if isinstance(error, LimitExceededError) and error.is_money:
                return Outcome(Run.Status.INCOMPLETE, incomplete_reason=Run.IncompleteReason.BUDGET)
            return Outcome(Run.Status.FAILED, last_error=failure_of(error))

    async def _work(self, position: Position, tools: ToolRegistry) -> Outcome:
        loop = position.loop
        while not loop.done:
            if self.wish:
                return self._left_as_wished(position)
            if loop.exhausted and loop.stop is not None:
                return Outcome.stopped(loop.stop)
            steps, obstacle = ready_steps(position, tools)
            if obstacle is not None:
                return obstacle
            self._last_answer = loop.stop
            await self._record.reserve(steps)
            if steps[0].kind == Step.Kind.MODEL_CALL:
                await self._call_model(steps[0], position)
            else:
                await self._call_tools(steps, position, tools)
        return answered(position, self._last_answer)

    async def _call_model(self, step: Step, position: Position) -> None:
        run, loop = self.run, position.loop
        caller = self._broker.for_scope(str(run.scope_id))
        choice = loop.tool_choice
        await self._confirm()
        with attributed(run=str(run.id), step=step.number):
            async with self._listening(step) as listening:
                reply: RoutedReply = await self._interruptibly(
                    caller.chat(
                        list(loop.messages),
                        tools=loop.tools,
                        **asked_of_models(run),
                        params=None if choice is None else {"tool_choice": choice},
                        **listening,
                    ),
                    within=loop.seconds_left,
                )
        self._record.reply(step, reply, position)

    @asynccontextmanager
    async def _listening(self, step: Step) -> AsyncIterator[dict[str, Any]]:
        """``on_delta`` for a call, if somebody listens; all is told before what comes next.

        Where no reply comes of the call, nothing of what was said stands. Of a run that was lost
        another worker tells.
        """
        said = self._telling.of(self.run, step)
        if said is None:
            yield {}
            return
        try:
            yield {"on_delta": said}
        except BaseException:
            if self.wish < Wish.LOST:
                said.void()
                await said.end()
            raise
        await said.end()

    async def _call_tools(
        self, steps: Sequence[Step], position: Position, tools: ToolRegistry
    ) -> None:
        """Run the calls of one turn side by side; each result is durable as soon as it is there,
        the last one's with what comes next."""
        slots, lane = asyncio.Semaphore(MAX_TOOL_CONCURRENCY), asyncio.Lock()
        tasks = [
            asyncio.ensure_future(self._call_tool(step, position, tools, slots, lane))
            for step in steps
        ]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        faults = [each for each in ended if isinstance(each, BaseException)]
        for fault in sorted(faults, key=lambda fault: isinstance(fault, _InterruptedError)):
            raise fault

    async def _call_tool(
        self,
        step: Step,
        position: Position,
        tools: ToolRegistry,
        slots: asyncio.Semaphore,
        lane: asyncio.Lock,
    ) -> None:
        function = tools.toolbox.find(step.name or "")
        async with lane if function is not None and function.sequential else slots:
            await self._confirm()
            if self.wish >= Wish.CANCEL:
                unreserve([step])
                return
            result = await self._tool_result(step, position, tools)
            self._record.result(step, result, position)
            if position.open and await self._record.write():
                self.want(Wish.CANCEL)

    async def _confirm(self) -> None:
        """Before a call: what is reserved is somebody else's if this worker has stood still."""
        if await self._record.confirm():
            self.want(Wish.CANCEL)

    async def _tool_result(self, step: Step, position: Position, tools: ToolRegistry) -> ToolResult:
        call = position.call_of(step)
        if step.decision is not None and step.decision["decision"] == "edit":
            call = replace(call, arguments=step.arguments)
        left = position.loop.seconds_left
        work = run_tool(self.run, call, tools.toolbox, self.cancellation, left)
        return await (self._interruptibly(work) if step.effect in (None, "pure") else work)

    async def _interruptibly(
        self, work: Coroutine[Any, Any, T], *, within: float | None = None
    ) -> T:
        """The value of what can be given up half-way. Raises _InterruptedError, and TimeoutError
        after ``within`` seconds."""
        if self.wish >= Wish.CUT:
            work.close()
            raise _InterruptedError
        task = asyncio.ensure_future(work)
        self._harmless.add(task)
        try:
            async with asyncio.timeout(within):
                return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if self.wish < Wish.CUT or (me is not None and me.cancelling()):
                raise
        finally:
            self._harmless.discard(task)
        raise _InterruptedError

    def _left_as_wished(self, position: Position) -> Outcome:
        if self.wish >= Wish.LOST:
            raise LeaseLostError
        if self.wish >= Wish.CANCEL:
            return CANCELLED
        unreserve(position.open)
        return PUT_BACK if self.wish is Wish.PUT_BACK else HANDED_OVER
