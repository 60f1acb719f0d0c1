"""Ratings into ranking: a curated weight that ratings displace as they accumulate."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from llmbroker.models import LLMConfig

PRIOR_STRENGTH = 5.0
"""How many ratings the curated weight counts for."""

DEMOTED_BELOW = 0.5
"""A model is demoted when its true quality lies below this with 95 % confidence."""

_Z = 1.96


@dataclass(slots=True)
class Tally:
    """Ratings of one model for one operation."""

    count: int = 0
    total: float = 0.0


class Quality:
    """Ratings per (scope, operation, model), and over all scopes as a prior for each."""

    def __init__(self) -> None:
        self._own: defaultdict[tuple[str | None, str | None, str], Tally] = defaultdict(Tally)
        self._all: defaultdict[tuple[str | None, str], Tally] = defaultdict(Tally)

    def observe(
        self, *, scope: str | None, operation: str | None, llm_name: str, score: float
    ) -> None:
        """Take a rating into account."""
        for tally in (self._own[scope, operation, llm_name], self._all[operation, llm_name]):
            tally.count += 1
            tally.total += score

    def expected(self, config: LLMConfig, *, scope: str | None, operation: str | None) -> float:
        """The quality to expect of ``config``, 0 … 1: the scope's own ratings count first."""
        prior = _blend(self._all.get((operation, config.name)), config.weight)
        return _blend(self._own.get((scope, operation, config.name)), prior)

    def demoted(self, config: LLMConfig, *, scope: str | None, operation: str | None) -> bool:
        """Whether this scope's ratings say, with confidence, that ``config`` is bad at it."""
        tally = self._own.get((scope, operation, config.name))
        return tally is not None and wilson_upper(tally.total, tally.count) < DEMOTED_BELOW


def _blend(tally: Tally | None, prior: float) -> float:
    if tally is None:
        return prior
    return (tally.total + PRIOR_STRENGTH * prior) / (tally.count + PRIOR_STRENGTH)


def wilson_upper(total: float, count: int) -> float:
    """Upper end of the 95 % Wilson score interval of ``total`` out of ``count``.

    >>> round(wilson_upper(0.0, 3), 2), round(wilson_upper(0.0, 10), 2)
    (0.56, 0.28)
    """
    if count == 0:
        return 1.0
    share, square = total / count, _Z * _Z
    centre = share + square / (2 * count)
    spread = _Z * math.sqrt((share * (1 - share) + square / (4 * count)) / count)
    return (centre + spread) / (1 + square / count)
