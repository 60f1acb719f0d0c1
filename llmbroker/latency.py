"""How long each model takes, learned from its own answers."""

from __future__ import annotations

from dataclasses import dataclass

_GAIN = 1 / 8
_DEVIATION_GAIN = 1 / 4
_DEVIATIONS = 4


@dataclass(slots=True)
class Smoothed:
    """Mean and mean deviation in seconds, smoothed as TCP does its round trips (RFC 6298)."""

    mean: float
    deviation: float


class Latency:
    """Seconds per model name."""

    def __init__(self) -> None:
        self._known: dict[str, Smoothed] = {}

    def observe(self, llm_name: str, seconds: float) -> None:
        """Take one answer's time into account."""
        known = self._known.get(llm_name)
        if known is None:
            self._known[llm_name] = Smoothed(seconds, seconds / 2)
            return
        error = seconds - known.mean
        known.deviation += _DEVIATION_GAIN * (abs(error) - known.deviation)
        known.mean += _GAIN * error

    def observe_at_least(self, llm_name: str, seconds: float) -> None:
        """Take into account that no answer came within ``seconds``."""
        if seconds > (self.expected(llm_name) or 0.0):
            self.observe(llm_name, seconds)

    def expected(self, llm_name: str) -> float | None:
        """The time to expect, if anything is known."""
        known = self._known.get(llm_name)
        return known.mean if known else None

    def unusual(self, llm_name: str) -> float:
        """The time after which an answer is late by this model's own standard; 0 if unknown."""
        known = self._known.get(llm_name)
        return known.mean + _DEVIATIONS * known.deviation if known else 0.0
