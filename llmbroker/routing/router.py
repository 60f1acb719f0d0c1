"""Routes one call over the candidates: which is tried when, and with what the call ends."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import NoReturn

from llmbroker.errors import LLMBrokerError, LLMRequestError, NoLLMAvailableError
from llmbroker.models import Completion
from llmbroker.routing.attempt import Attempt
from llmbroker.routing.call import RECHECK, Ask, Trip
from llmbroker.routing.candidates import Candidate
from llmbroker.routing.engine import Engine
from llmbroker.routing.pool import Pool
from llmbroker.routing.race import Produce, Produced, Race
from llmbroker.routing.ranking import Ranking
from llmbroker.routing.streaming import LiveStream, open_stream
from llmbroker.routing.survey import Survey, survey
from llmbroker.wire.deltas import OnDelta
from llmbroker.wire.failure import ExchangeError

PROBE_LEASE = 30.0
"""Seconds after which a model whose first caller never came back may be tried by another."""

RETURNS_PER_SECOND = 5
"""How many of those who wait look again within a second, so that no herd returns at once."""


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
        attempt, completion = await self._route(self._trip(ask), Attempt.answer)
        await attempt.succeed(completion)
        return attempt, completion

    async def stream(self, ask: Ask) -> tuple[Attempt, LiveStream]:
        """The stream of the first candidate that gives content. Raises like ``answer``."""
        return await self._route(self._trip(ask), open_stream)

    async def told(self, ask: Ask, tell: OnDelta) -> tuple[Attempt, Completion]:
        """``answer``, of which each piece is told as it arrives.

        One that breaks off is void, and asked for again like one that failed at once. How long
        a model may be silent is as with ``answer``: whether somebody watches decides nothing.
        """
        trip = self._trip(ask)
        self._engine.enter()
        try:
            while True:
                attempt, live = await self._route(trip, partial(open_stream, patient=True))
                try:
                    return attempt, await live.told(tell, self._reading_seconds(trip))
                except ExchangeError as error:
                    failure = error.failure
                await attempt.fail(failure, budget_spent=trip.budget_spent)
                tell(None)
                trip.progress.absorb(attempt.candidate, failure)
                await self._end_if_over(trip)
        finally:
            self._engine.leave()

    def _trip(self, ask: Ask) -> Trip:
        return Trip(ask, self._engine.clock)

    def _reading_seconds(self, trip: Trip) -> float:
        """How long the rest of an answer may take that has begun to arrive."""
        limit = self._engine.transport.timeouts.answer
        return limit if trip.answer_seconds is None else min(limit, trip.answer_seconds)

    async def _end_if_over(self, trip: Trip) -> None:
        if trip.progress.final is not None:
            raise trip.progress.final
        if trip.budget_spent:
            self._give_up(trip, await self._survey(trip))

    async def _route(self, trip: Trip, produce: Produce[Produced]) -> tuple[Attempt, Produced]:
        while True:
            found = await self._survey(trip)
            lanes = await self._lanes(trip, found)
            if not lanes:
                await self._wait(trip, found)
                continue
            race = Race(self._engine, trip, produce, partial(self._another, trip))
            is_only_one = len(found.rank) == 1
            winner = await race.run(
                lanes, None if is_only_one else self._patience(trip.ask, lanes[0])
            )
            if winner is not None:
                return winner
            if trip.progress.final is not None:
                raise trip.progress.final
            if trip.budget_spent:
                self._give_up(trip, found)

    async def _survey(self, trip: Trip) -> Survey:
        if self._engine.closing:
            raise LLMBrokerError("the broker is being closed")
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
        probe = found.probe_first()
        if probe is not None and not await self._claim(sorted(found.known_of(probe))):
            probe = None
        wanted = min(max(trip.ask.fastest_of, 2 if probe else 1), trip.progress.attempts_left)
        chosen = await self._choose(found, wanted - bool(probe))
        # From here on nothing is awaited: what is started is in the hands of the race.
        lanes = [] if probe is None else self._start(trip, probe, found, is_probe=True)
        for candidate, is_claimed in chosen:
            lanes += self._start(trip, candidate, found, is_claimed=is_claimed)
        return lanes

    async def _choose(
        self, found: Survey, wanted: int, *, has_choice: bool = False
    ) -> list[tuple[Candidate, bool]]:
        """The best ``wanted`` that are ready, and whether each was claimed.

        A model of which nobody has had an answer lately may be dead: one caller tries it, and
        the others take the next one. The last one they all take, unless the call ``has_choice``.
        """
        chosen: dict[str, tuple[Candidate, bool]] = {}
        for candidate in found.ready:
            if len(chosen) == wanted:
                break
            if candidate.name in chosen:
                continue
            model = candidate.model_id
            is_last = candidate is found.ready[-1] and not chosen and not has_choice
            if is_last or self._engine.trust.holds(model):
                chosen[candidate.name] = (candidate, False)
            elif await self._claim([model]):
                chosen[candidate.name] = (candidate, True)
        return list(chosen.values())

    async def _claim(self, ids: list[str]) -> bool:
        """Claim all of ``ids``, or none."""
        health = self._engine.health
        for number, identity in enumerate(ids):
            if not await health.claim_probe(identity, lease=PROBE_LEASE):
                await health.release(ids[:number])
                return False
        return True

    async def _another(self, trip: Trip, taken: frozenset[str]) -> list[Attempt] | None:
        """One more attempt, on none of the models ``taken``: none if none is ready now, None if
        there will be none."""
        if not trip.progress.attempts_left:
            return None
        try:
            found = await self._survey(trip)
        except (LLMRequestError, LLMBrokerError):
            return None
        if found.rank.keys() <= taken:
            return None
        found.ready = [each for each in found.ready if each.name not in taken]
        for candidate, is_claimed in await self._choose(found, 1, has_choice=True):
            return self._start(trip, candidate, found, is_claimed=is_claimed)
        return []

    def _start(
        self,
        trip: Trip,
        candidate: Candidate,
        found: Survey,
        *,
        is_probe: bool = False,
        is_claimed: bool = False,
    ) -> list[Attempt]:
        """An attempt on ``candidate``, or none if its last slot has just been taken."""
        known = found.known_of(candidate)
        claims = known if is_probe else frozenset({candidate.model_id} if is_claimed else ())
        if not self._engine.slots.take(candidate.config):
            self._engine.release_later(claims)
            return []
        trip.progress.attempts += 1
        return [
            Attempt(
                self._engine, trip.ask, candidate, known | claims, claims=claims, is_probe=is_probe
            )
        ]

    def _patience(self, ask: Ask, lane: Attempt) -> float | None:
        """Seconds until another candidate is started beside ``lane``: never, if so set, and
        later for a model that always takes longer."""
        if self._hedge_after is None:
            return None
        return max(self._hedge_after, self._engine.latency_of(ask).unusual(lane.candidate.name))

    async def _wait(self, trip: Trip, found: Survey) -> None:
        """Wait for something to come back. Raises NoLLMAvailableError when that is too late."""
        now, slots = self._engine.clock(), self._engine.slots
        away = found.returns_at - now if found.returns_at is not None else RECHECK
        if trip.queue_seconds <= 0 or (away > trip.queue_seconds and not found.busy):
            self._give_up(trip, found)
        pause = min(away, RECHECK) + slots.waiting / RETURNS_PER_SECOND
        await slots.released(found.busy, max(min(pause, trip.queue_seconds), 0.0))

    def _give_up(self, trip: Trip, found: Survey) -> NoReturn:
        retry_at = found.returns_at and datetime.fromtimestamp(found.returns_at, UTC)
        why = trip.progress.summary() if trip.progress.failures else "no model is free in time"
        raise NoLLMAvailableError(why, reason="timeout", retry_at=retry_at or None)
