"""Cooldowns: what is out of use until when, and who may try it first afterwards.

The port is async so that it can be shared by processes; the memory one keeps everything in
one dict. Times are seconds since the epoch, by an injected clock.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

MAX_COOLDOWN = 300.0
"""Cap of the doubling, in seconds; a provider that asks for longer gets up to MAX_ASKED."""

MAX_ASKED = 86_400.0
"""Cap of what a provider may ask for (Retry-After), in seconds."""

FORGET_AFTER = 900.0
"""A streak is forgotten this long after its cooldown ended without another failure."""


FORGETTING_EVERY = 60.0
"""Seconds between two looks through all that is known for what is to be forgotten."""


@dataclass(frozen=True, slots=True)
class Cooldown:
    """``until`` when nothing is sent; until ``probe_until`` somebody's first try is under way."""

    until: float
    streak: int
    probe_until: float = 0.0


class Health(Protocol):
    """Shared knowledge of what is failing. Every method is one round trip."""

    async def cooldowns(self, ids: Sequence[str]) -> Mapping[str, Cooldown]:
        """The cooldowns of those ids that have one; an id without is healthy."""
        ...

    async def cool(self, identity: str, *, seconds: float, asked: float | None) -> float:
        """Note a failure; returns the new deadline, which is never earlier than the old one.

        ``seconds`` is the first cooldown of a streak, ``asked`` what the provider asks for.
        """
        ...

    async def clear(self, ids: Sequence[str]) -> None:
        """Note an answer: the streaks of ``ids`` end, and claims on them."""
        ...

    async def claim_probe(self, identity: str, *, lease: float) -> bool:
        """Whether this caller may try ``identity``, after its cooldown or for the first time.

        One caller at a time may, until it has answered. The claim lapses after ``lease``
        seconds, in case its holder dies.
        """
        ...

    async def release(self, ids: Sequence[str]) -> None:
        """Give claims back that came to nothing: somebody else may try."""
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...


def next_deadline(
    known: Cooldown | None, *, now: float, seconds: float, asked: float | None, jitter: float
) -> Cooldown:
    """The cooldown after one more failure. ``jitter`` (0 … 1) spreads the callers' return.

    Calls that were under way together and fail together are one failure: during a cooldown
    the streak does not grow, and only what the provider asks for can move the deadline.
    """
    spread = 1 + jitter / 4
    wanted = min(asked or 0.0, MAX_ASKED) * spread
    if known is not None and now < known.until:
        return replace(known, until=max(known.until, now + wanted))
    streak = (known.streak if known else 0) + 1
    own = min(seconds * 2 ** min(streak - 1, 16), max(seconds, MAX_COOLDOWN)) * spread
    return Cooldown(now + max(own, wanted), streak)


class MemoryHealth:
    """Health of one process."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._known: dict[str, Cooldown] = {}
        self._claimed: dict[str, float] = {}  # until when, of what has no cooldown
        self._forget_at = 0.0

    async def cooldowns(self, ids: Sequence[str]) -> Mapping[str, Cooldown]:
        """See Health."""
        if not self._known:
            return {}
        self._forget()
        found = ((identity, self._recent(identity)) for identity in ids)
        return {identity: known for identity, known in found if known is not None}

    async def cool(self, identity: str, *, seconds: float, asked: float | None) -> float:
        """See Health."""
        cooldown = next_deadline(
            self._recent(identity),
            now=self._clock(),
            seconds=seconds,
            asked=asked,
            jitter=self._jitter(),
        )
        self._known[identity] = cooldown
        self._claimed.pop(identity, None)
        return cooldown.until

    async def clear(self, ids: Sequence[str]) -> None:
        """See Health."""
        for identity in ids:
            self._known.pop(identity, None)
            self._claimed.pop(identity, None)

    async def release(self, ids: Sequence[str]) -> None:
        """See Health."""
        for identity in ids:
            self._claimed.pop(identity, None)
            if known := self._known.get(identity):
                self._known[identity] = replace(known, probe_until=0.0)

    async def claim_probe(self, identity: str, *, lease: float) -> bool:
        """See Health."""
        known, now = self._recent(identity), self._clock()
        if known is None:
            self._forget()
            if now < self._claimed.get(identity, 0.0):
                return False
            self._claimed[identity] = now + lease
            return True
        if now < known.until or now < known.probe_until:
            return False
        self._known[identity] = Cooldown(known.until, known.streak, now + lease)
        return True

    async def aclose(self) -> None:
        """See Health. There is nothing to close."""

    def _recent(self, identity: str) -> Cooldown | None:
        known = self._known.get(identity)
        return None if known is None or known.until < self._clock() - FORGET_AFTER else known

    def _forget(self) -> None:
        """Once in a while: a look must not cost more the more is cooling."""
        now = self._clock()
        if now < self._forget_at:
            return
        self._forget_at = now + FORGETTING_EVERY
        horizon = now - FORGET_AFTER
        self._known = {name: each for name, each in self._known.items() if each.until >= horizon}
        self._claimed = {name: until for name, until in self._claimed.items() if until > now}
