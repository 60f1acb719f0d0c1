"""Runs attempts side by side: the first to produce wins, the others are put away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

from llmbroker.models import Completion
from llmbroker.routing.attempt import Attempt
from llmbroker.routing.call import RECHECK, Trip
from llmbroker.routing.engine import Engine
from llmbroker.routing.streaming import LiveStream
from llmbroker.wire.failure import ExchangeError, Failure

logger = logging.getLogger(__name__)

Produced = TypeVar("Produced")
Produce = Callable[[Attempt, float | None], Awaitable[Produced]]
Another = Callable[[frozenset[str]], Awaitable[list[Attempt] | None]]


class Race(Generic[Produced]):
    """One race. It ends with the first that produces, when all have failed, or with a failure
    that no other model may answer for."""

    def __init__(
        self, engine: Engine, trip: Trip, produce: Produce[Produced], another: Another
    ) -> None:
        """``another`` makes one more attempt, on none of the models it is given: none if none is
        ready now, None if there will be none."""
        self._engine = engine
        self._trip = trip
        self._produce: Produce[Produced] = produce
        self._another = another
        self._running: dict[asyncio.Task[Produced | Failure], Attempt] = {}

    async def run(
        self, lanes: Sequence[Attempt], patience: float | None
    ) -> tuple[Attempt, Produced] | None:
        """The winner, if there is one. After ``patience`` seconds one more attempt is started."""
        if patience is None and len(lanes) == 1:
            return await self._alone(lanes[0])
        for lane in lanes:
            self._start(lane)
        winner, decided = None, False
        try:
            while self._running and not decided:
                done, _ = await asyncio.wait(
                    self._running, timeout=patience, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    patience = await self._start_another()
                winner = self._judge(done)
                decided = winner is not None or self._trip.progress.final is not None
        finally:
            for task, lane in self._running.items():
                self._put_away(task, lane, superseded=decided)
        return winner

    async def _alone(self, lane: Attempt) -> tuple[Attempt, Produced] | None:
        """One that nobody will join needs no task of its own."""
        self._engine.enter()
        try:
            outcome = await self._run(lane)
        finally:
            self._engine.leave()
        if not isinstance(outcome, Failure):
            return lane, outcome
        self._trip.progress.absorb(lane.candidate, outcome)
        return None

    def _judge(
        self, done: Iterable[asyncio.Task[Produced | Failure]]
    ) -> tuple[Attempt, Produced] | None:
        """Take note of those that failed; the first that did not is the winner."""
        winner = None
        for task in done:
            lane = self._running.pop(task)
            outcome = task.result()
            if isinstance(outcome, Failure):
                self._trip.progress.absorb(lane.candidate, outcome)
            elif winner is None:
                winner = (lane, outcome)
            else:
                self._running[task] = lane
        return winner

    async def _start_another(self) -> float | None:
        """Start one more, and no third; returns when to look again if none is ready."""
        for lane in self._running.values():
            lane.note_overdue()
        lanes = await self._another(
            frozenset(each.candidate.name for each in self._running.values())
        )
        for lane in lanes or ():
            self._start(lane)
        return RECHECK if lanes == [] else None

    def _start(self, lane: Attempt) -> None:
        task = asyncio.ensure_future(self._run(lane))
        self._engine.track(task)
        self._running[task] = lane

    async def _run(self, lane: Attempt) -> Produced | Failure:
        trip = self._trip
        try:
            return await self._produce(lane, trip.answer_seconds)
        except ExchangeError as error:
            failure = error.failure
        except asyncio.CancelledError:
            await lane.abandon()
            raise
        except BaseException as error:
            await lane.crash(error)
            raise
        await lane.fail(failure, budget_spent=trip.budget_spent)
        return failure

    def _put_away(
        self, task: asyncio.Task[Produced | Failure], lane: Attempt, *, superseded: bool
    ) -> None:
        """Take a loser off its provider at once. A probe may go on: it was asked to find out
        whether its model is well again, and a slow model would never win a race."""
        lane.superseded = superseded
        task.add_done_callback(partial(self._close, lane))
        if superseded and lane.is_probe:
            self._engine.leave_to_itself(task)
        else:
            task.cancel()

    def _close(self, lane: Attempt, task: asyncio.Task[Produced | Failure]) -> None:
        """See to what a loser produced all the same."""
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            logger.error("%s: an attempt could not be closed", lane.candidate.name, exc_info=error)
            return
        produced = task.result()
        if isinstance(produced, LiveStream):
            self._engine.track(asyncio.ensure_future(produced.aclose()))
        elif isinstance(produced, Completion):
            self._engine.track(asyncio.ensure_future(lane.abandon(produced)))
