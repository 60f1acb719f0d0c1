"""Ratings into ranking: a curated weight that ratings displace as they accumulate."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from llmbroker.models import LLMConfig, Rated

PRIOR_STRENGTH = 5.0
"""How many ratings the curated weight counts for."""

DEMOTED_BELOW = 0.5
"""A model is demoted when its true quality lies below this with 95 % confidence."""

MAX_SCOPES = 4096
"""Scopes whose ratings are kept; the one unused for longest is forgotten, and read again."""

_Z = 1.96

_Subject = tuple[str | None, str]
"""An operation and a model's name."""


@dataclass(slots=True)
class Tally:
    """Ratings of one model for one operation."""

    count: int = 0
    total: float = 0.0

    def add(self, other: Tally, sign: int = 1) -> None:
        """Take ``other`` in, or out again."""
        self.count += sign * other.count
        self.total += sign * other.total


class Quality:
    """Ratings per (scope, operation, model), and over all scopes as a prior for each.

    The prior is two numbers per operation and model: nothing of a tenant can be read off it.
    """

    def __init__(self) -> None:
        self._own: OrderedDict[str | None, dict[_Subject, Tally]] = OrderedDict()
        self._all: defaultdict[_Subject, Tally] = defaultdict(Tally)

    @property
    def is_rated(self) -> bool:
        """Whether there is any rating at all; without one the curated weights decide alone."""
        return bool(self._all)

    def observe(self, scope: str | None, rated: Rated) -> None:
        """Take one more rating into account."""
        tallies = self._scope(scope)
        one = Tally(1, rated.score)
        tallies.setdefault((rated.operation, rated.llm_name), Tally()).add(one)
        self._all[rated.operation, rated.llm_name].add(one)

    def replace(self, scope: str | None, ratings: Iterable[Rated]) -> None:
        """Forget what is known of ``scope`` and take ``ratings`` instead."""
        self._forget(scope)
        self._scope(scope)
        for rated in ratings:
            self.observe(scope, rated)

    def expected(self, config: LLMConfig, *, scope: str | None, operation: str | None) -> float:
        """The quality to expect of ``config``, 0 … 1: the scope's own ratings count first."""
        subject = (operation, config.name)
        prior = _blend(self._all.get(subject), config.weight)
        return _blend(self._own.get(scope, {}).get(subject), prior)

    def demoted(self, config: LLMConfig, *, scope: str | None, operation: str | None) -> bool:
        """Whether this scope's ratings say, with confidence, that ``config`` is bad at it."""
        tally = self._own.get(scope, {}).get((operation, config.name))
        return tally is not None and wilson_upper(tally.total, tally.count) < DEMOTED_BELOW

    def _scope(self, scope: str | None) -> dict[_Subject, Tally]:
        tallies = self._own.setdefault(scope, {})
        self._own.move_to_end(scope)
        if len(self._own) > MAX_SCOPES:
            self._forget(next(iter(self._own)))
        return tallies

    def _forget(self, scope: str | None) -> None:
        for subject, tally in self._own.pop(scope, {}).items():
            self._all[subject].add(tally, -1)
            if not self._all[subject].count:
                del self._all[subject]


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
