"""What one attempt means for its candidate's standing with everybody: health, trust, claims."""

from __future__ import annotations

from datetime import UTC, datetime

from llmbroker.routing.candidates import Candidate
from llmbroker.routing.engine import Engine
from llmbroker.routing.verdict import VERDICTS, Cools
from llmbroker.wire.failure import Failure, FailureKind

_SHORTEST_COOLDOWN = 0.5  # seconds, for a provider that says 0


class Standing:
    """``known`` are the ids that an answer clears, ``claims`` those that nobody else tries
    meanwhile."""

    def __init__(
        self, engine: Engine, candidate: Candidate, known: frozenset[str], claims: frozenset[str]
    ) -> None:
        self._engine = engine
        self._candidate = candidate
        self._model = candidate.model_id
        self._known = known
        self._claims = claims
        self._is_overdue = False

    async def answered(self) -> None:
        """Bad streaks end, and everybody may use it."""
        self._engine.trust.earn(self._model)
        known, self._known, self._claims = self._known, frozenset(), frozenset()
        if known:
            await self._engine.health.clear(sorted(known))
            self._engine.alarm.cleared(known, self._candidate.name)

    async def failed(self, failure: Failure) -> datetime | None:
        """Cool what the table says; returns until when."""
        cools = VERDICTS[failure.kind].cools
        until = None if cools is Cools.NOTHING else await self._cool(cools, failure)
        if failure.kind is FailureKind.KEY_REFUSED:
            await self._report_key(failure)
        await self.proved_nothing()
        return until

    async def proved_nothing(self) -> None:
        """Somebody else may try."""
        claims, self._claims = self._claims, frozenset()
        if claims:
            await self._engine.health.release(sorted(claims))

    def overdue(self) -> None:
        """Until it answers, others follow one at a time. A claim stays, and lapses by itself."""
        if self._is_overdue:
            return
        self._is_overdue = True
        self._engine.trust.lose(self._model)
        self._engine.release_later({self._model} - self._claims)
        self._claims = frozenset()

    async def _cool(self, cools: Cools, failure: Failure) -> datetime:
        identity = self._candidate.ids[cools]
        self._engine.trust.lose(identity)
        self._claims -= {identity}
        seconds = await self._engine.health.cool(
            identity, seconds=_first_cooldown(failure), asked=failure.retry_after
        )
        until = datetime.fromtimestamp(seconds, UTC)
        self._engine.alarm.cooled(identity, self._candidate.name, failure, cools, until)
        return until

    async def _report_key(self, failure: Failure) -> None:
        watch = self._engine.watch
        if watch is not None and self._candidate.key.id:
            await watch.key_refused(self._candidate.key, detail=failure.detail)


def _first_cooldown(failure: Failure) -> float:
    """The table's, unless a rate limit itself says when it passes."""
    if failure.kind is FailureKind.RATE_LIMITED and failure.retry_after is not None:
        return max(failure.retry_after, _SHORTEST_COOLDOWN)
    return VERDICTS[failure.kind].seconds
