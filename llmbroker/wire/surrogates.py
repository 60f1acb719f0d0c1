"""Joins characters that a stream cut between the two halves of a surrogate pair."""

from __future__ import annotations

from llmbroker.text import storable


class SurrogateJoiner:
    """Holds back the first half of a pair until the second comes."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """``text`` with pairs joined and what cannot be stored replaced."""
        if text.isascii() and not self._held:
            return storable(text)
        text, self._held = self._held + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return storable(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def flush(self) -> str:
        """What is left of a pair whose second half never came."""
        held, self._held = self._held, ""
        return storable(held)
