"""Routes one call over the candidates: which is tried when, and with what the call ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NoReturn, TypeVar

from llmbroker.errors import NoLLMAvailableError
from llmbroker.models import Completion
from llmbroker.routing.attempt import Attempt, Engine
from llmbroker.routing.call import Ask, Progress
from llmbroker.routing.candidates import Candidate
from llmbroker.routing.pool import Pool
from llmbroker.routing.ranking import Ranking
from llmbroker.routing.streaming import LiveStream, open_stream
from llmbroker.routing.survey import Survey, survey
from llmbroker.wire.failure import ExchangeError, Failure

Produced = TypeVar("Produced")
Produce = Callable[[Attempt, float | None], Awaitable[Produced]]

PATIENCE = 120.0
"""Seconds that ``wait=None`` waits for a candidate to come back."""

PROBE_LEASE = 60.0
"""Seconds after which a probe whose prober died may be made by somebody else."""

RECHECK = 1.0
"""Seconds between two looks at the pool while waiting: other processes may have news."""


class Trip:
    """One call on its way: what is asked, what was tried, how much time is left."""

    def __init__(self, ask: Ask, clock: Callable[[], float]) -> None:
        self.ask = ask
        self.progress = Progress()
        self._clock = clock
        self._queue_until = clock() + (PATIENCE if ask.wait is None else ask.wait)
        self._answer_until = clock() + ask.wait if ask.wait else None

    @property
    def queue_seconds(self) -> float:
        """How long the call may still wait for a candidate."""
        return self._queue_until - self._clock()

    @property
    def answer_seconds(self) -> float | None:
        """How long an answer may still take, where the caller bounds it."""
        if self._answer_until is None:
            return None
        return max(self._answer_until - self._clock(), 0.001)

    @property
    def budget_spent(self) -> bool:
        """Whether the caller's own time has run out."""
        return self._answer_until is not None and self._clock() >= self._answer_until


class Router:
    """Sends calls; keeps no state of its own between them."""

    def __init__(
        self, pool: Pool, ranking: Ranking, engine: Engine, *, hedge_after: float | None
    ) -> None:
        """``hedge_after``: seconds without an answer after which a second candidate is started."""
        self._pool = pool
        self._ranking = ranking
        self._engine = engine
        self._hedge_after = hedge_after

    async def answer(self, ask: Ask) -> tuple[Attempt, Completion]:
        """The whole answer of the first candidate that gives one.

        Raises LLMRequestError: the request's own fault, or why no model could take it.
        """
        return await self._route(ask, Attempt.answer)

    async def stream(self, ask: Ask) -> tuple[Attempt, LiveStream]:
        """The stream of the first candidate that gives content. Raises like ``answer``."""
        return await self._route(ask, open_stream)

    async def _route(self, ask: Ask, produce: Produce[Produced]) -> tuple[Attempt, Produced]:
        trip = Trip(ask, self._engine.clock)
        while True:
            found = await self._survey(trip)
            lanes = await self._lanes(trip, found)
            if not lanes:
                await self._wait(trip, found)
                continue
            winner = await self._race(trip, lanes, found, produce)
            if winner is not None:
                return winner
            if trip.progress.final is not None:
                raise trip.progress.final
            if trip.budget_spent:
                self._give_up(trip, found)

    async def _survey(self, trip: Trip) -> Survey:
        usable = await self._pool.usable(trip.ask.scope)
        allowed = [each for each in usable if trip.progress.allows(each)]
        if not allowed:
            raise trip.progress.exhausted()
        ranked = self._ranking.order(allowed, trip.ask)
        ids = [identity for candidate in ranked for identity in candidate.ids.values()]
        known = await self._engine.health.cooldowns(ids)
        return survey(ranked, known, self._engine.slots, now=self._engine.clock())

    async def _lanes(self, trip: Trip, found: Survey) -> list[Attempt]:
        """The attempts to start now: usually one; two when one of them is a probe; N to race."""
        lanes = []
        probe = found.probe_first()
        if probe is not None and await self._claim(probe, found):
            lanes += self._start(trip, probe, found)
        while found.ready and len(lanes) < max(trip.ask.fastest_of, 1 + bool(lanes and probe)):
            lanes += self._start(trip, found.ready.pop(0), found)
        return lanes

    async def _claim(self, candidate: Candidate, found: Survey) -> bool:
        claims = [
            await self._engine.health.claim_probe(identity, lease=PROBE_LEASE)
            for identity in sorted(found.known_of(candidate))
        ]
        return all(claims)

    def _start(self, trip: Trip, candidate: Candidate, found: Survey) -> list[Attempt]:
        """An attempt on ``candidate``, and no other key of its model beside it; or none."""
        found.ready = [each for each in found.ready if each.name != candidate.name]
        if not self._engine.slots.take(candidate.config):
            return []
        trip.progress.attempts += 1
        return [Attempt(self._engine, trip.ask, candidate, found.known_of(candidate))]

    async def _race(
        self, trip: Trip, lanes: list[Attempt], found: Survey, produce: Produce[Produced]
    ) -> tuple[Attempt, Produced] | None:
        """Run ``lanes`` and, when they are slow, one more; the first to produce wins."""
        patience = self._patience(trip.ask, lanes[0])
        if len(lanes) == 1 and (patience is None or not found.ready):
            return await self._alone(trip, lanes[0], produce)
        running = {self._spawn(trip, lane, produce): lane for lane in lanes}
        winner: tuple[Attempt, Produced] | None = None
        try:
            while running and winner is None:
                done, _ = await asyncio.wait(
                    running,
                    timeout=patience if found.ready else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not done:
                    for lane in self._start(trip, found.ready.pop(0), found):
                        running[self._spawn(trip, lane, produce)] = lane
                    found.ready = []
                for task in done:
                    lane = running.pop(task)
                    outcome = task.result()
                    if isinstance(outcome, Failure):
                        trip.progress.absorb(lane.candidate, outcome)
                    elif winner is None:
                        winner = (lane, outcome)
                    else:
                        running[task] = lane
        finally:
            for task, lane in running.items():
                lane.superseded = winner is not None
                self._dismiss(task)
        return winner

    async def _alone(
        self, trip: Trip, lane: Attempt, produce: Produce[Produced]
    ) -> tuple[Attempt, Produced] | None:
        """What ``_race`` does when there is nobody to race with: no task is needed."""
        outcome = await self._run(trip, lane, produce)
        if isinstance(outcome, Failure):
            trip.progress.absorb(lane.candidate, outcome)
            return None
        return lane, outcome

    def _patience(self, ask: Ask, lane: Attempt) -> float | None:
        """Seconds until another candidate is started beside ``lane``: never, if so set, and
        later for a model that always takes longer."""
        if self._hedge_after is None:
            return None
        return max(self._hedge_after, self._engine.latency_of(ask).unusual(lane.candidate.name))

    def _dismiss(self, task: asyncio.Task[Produced | Failure]) -> None:
        """Take a loser off its provider at once; it is journaled beside the winner's answer."""
        if not task.cancel() and isinstance(stream := task.result(), LiveStream):
            self._engine.track(asyncio.ensure_future(stream.aclose()))

    def _spawn(
        self, trip: Trip, lane: Attempt, produce: Produce[Produced]
    ) -> asyncio.Task[Produced | Failure]:
        task = asyncio.ensure_future(self._run(trip, lane, produce))
        self._engine.track(task)
        return task

    async def _run(
        self, trip: Trip, lane: Attempt, produce: Produce[Produced]
    ) -> Produced | Failure:
        try:
            return await produce(lane, trip.answer_seconds)
        except ExchangeError as error:
            failure = error.failure
        except asyncio.CancelledError:
            await lane.abandon()
            raise
        except BaseException:
            # A store or a port failed: the slot must not stay taken for ever.
            lane.release()
            raise
        await lane.fail(failure, budget_spent=trip.budget_spent)
        return failure

    async def _wait(self, trip: Trip, found: Survey) -> None:
        """Wait for something to come back. Raises NoLLMAvailableError when that is too late."""
        now = self._engine.clock()
        away = found.returns_at - now if found.returns_at is not None else RECHECK
        if trip.queue_seconds <= 0 or (away > trip.queue_seconds and not found.busy):
            self._give_up(trip, found)
        await self._engine.slots.released(max(min(away, trip.queue_seconds, RECHECK), 0.0))

    def _give_up(self, trip: Trip, found: Survey) -> NoReturn:
        retry_at = found.returns_at and datetime.fromtimestamp(found.returns_at, UTC)
        why = trip.progress.summary() if trip.progress.failures else "no model is free in time"
        raise NoLLMAvailableError(why, reason="timeout", retry_at=retry_at or None)
