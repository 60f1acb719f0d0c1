"""The order in which candidates are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llmbroker.latency import Latency
from llmbroker.models import LLMConfig
from llmbroker.prices import typical_cost
from llmbroker.quality import Quality
from llmbroker.routing.call import Ask
from llmbroker.routing.candidates import Candidate

_UNKNOWN_COST = float("inf")
_UNKNOWN_LATENCY = 0.0  # a model that was never tried is tried once, or nothing would be known


class Ranking:
    """What the caller prefers first; demoted models last; equals in the registry's order."""

    def __init__(self, quality: Quality | None, latency_of: Callable[[Ask], Latency]) -> None:
        """Without ``quality`` the curated weights alone decide."""
        self._quality = quality
        self._latency_of = latency_of

    def order(self, candidates: Sequence[Candidate], ask: Ask) -> Sequence[Candidate]:
        """``candidates``, best first."""
        if len(candidates) == 1:
            return candidates
        unrated = self._quality is None or not self._quality.is_rated
        if unrated and not ask.wait and ask.prefer == "quality":
            return sorted(candidates, key=lambda candidate: -candidate.config.weight)
        return sorted(candidates, key=lambda candidate: self._badness(candidate.config, ask))

    def _badness(self, config: LLMConfig, ask: Ask) -> tuple[bool, bool, float, float]:
        quality = self._expected(config, ask)
        return (
            self._too_slow(config, ask),
            self._demoted(config, ask),
            self._preference(config, ask),
            -quality,
        )

    def _too_slow(self, config: LLMConfig, ask: Ask) -> bool:
        """Whether the caller's ``wait`` will most likely run out."""
        expected = self._latency_of(ask).expected(config.name) if ask.wait else None
        return expected is not None and ask.wait is not None and expected >= ask.wait

    def _preference(self, config: LLMConfig, ask: Ask) -> float:
        if ask.prefer == "latency":
            return self._latency_of(ask).expected(config.name) or _UNKNOWN_LATENCY
        if ask.prefer == "cost":
            cost = typical_cost(config)
            return _UNKNOWN_COST if cost is None else float(cost)
        return 0.0

    def _expected(self, config: LLMConfig, ask: Ask) -> float:
        if self._quality is None:
            return config.weight
        return self._quality.expected(config, scope=ask.scope, operation=ask.operation)

    def _demoted(self, config: LLMConfig, ask: Ask) -> bool:
        return self._quality is not None and self._quality.demoted(
            config, scope=ask.scope, operation=ask.operation
        )
