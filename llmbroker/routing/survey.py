"""The candidates of one call at one instant: who is ready, who may be probed, who is away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llmbroker.routing.candidates import Candidate
from llmbroker.routing.health import Cooldown
from llmbroker.routing.slots import Slots


@dataclass(slots=True)
class Survey:
    """``ready`` and ``probation`` hold candidates best first, ``rank`` their common order.

    ``returns_at`` is when the first one that is away comes back, in seconds since the epoch;
    ``busy`` says that some wait for a free slot.
    """

    ready: list[Candidate] = field(default_factory=list)
    probation: list[Candidate] = field(default_factory=list)
    rank: dict[str, int] = field(default_factory=dict)
    returns_at: float | None = None
    busy: bool = False
    known: Mapping[str, Cooldown] = field(default_factory=dict)

    def known_of(self, candidate: Candidate) -> frozenset[str]:
        """The ids of ``candidate`` that have a cooldown, running or over."""
        if not self.known:
            return frozenset()
        return frozenset(identity for identity in candidate.ids.values() if identity in self.known)

    def probe_first(self) -> Candidate | None:
        """The candidate whose return is worth trying now: better than any that is ready."""
        if not self.probation:
            return None
        best = self.probation[0]
        if self.ready and self.rank[self.ready[0].name] <= self.rank[best.name]:
            return None
        return best


def survey(
    candidates: Sequence[Candidate], known: Mapping[str, Cooldown], slots: Slots, *, now: float
) -> Survey:
    """Sort ``candidates`` (best first) by what can be done with each at ``now``."""
    rank: dict[str, int] = {}
    for candidate in candidates:
        rank.setdefault(candidate.name, len(rank))
    if not known:  # so nearly always: nothing cools
        ready = [each for each in candidates if slots.free(each.config)]
        return Survey(ready, rank=rank, busy=len(ready) < len(candidates))
    result = Survey(rank=rank, known=known)
    for candidate in candidates:
        cooldowns = [known[each] for each in candidate.ids.values() if each in known]
        away_until = max((_away_until(each, now) for each in cooldowns), default=0.0)
        if away_until > now:
            result.returns_at = min(away_until, result.returns_at or away_until)
        elif not slots.free(candidate.config):
            result.busy = True
        elif cooldowns:
            result.probation.append(candidate)
        else:
            result.ready.append(candidate)
    return result


def _away_until(cooldown: Cooldown, now: float) -> float:
    return cooldown.until if cooldown.until > now else cooldown.probe_until
