"""The order in which candidates are tried."""

from __future__ import annotations

from collections.abc import Iterable

from llmbroker.quality import Quality
from llmbroker.routing.call import Ask
from llmbroker.routing.candidates import Candidate


class Ranking:
    """Best expected quality first; demoted models last; equals in the registry's order."""

    def __init__(self, quality: Quality | None) -> None:
        """Without ``quality`` the curated weights alone decide."""
        self._quality = quality

    def order(self, candidates: Iterable[Candidate], ask: Ask) -> list[Candidate]:
        """``candidates``, best first."""
        return sorted(candidates, key=lambda candidate: self._badness(candidate, ask))

    def _badness(self, candidate: Candidate, ask: Ask) -> tuple[bool, float]:
        config, quality = candidate.config, self._quality
        if quality is None:
            return False, -config.weight
        scope, operation = ask.scope, ask.operation
        return (
            quality.demoted(config, scope=scope, operation=operation),
            -quality.expected(config, scope=scope, operation=operation),
        )
