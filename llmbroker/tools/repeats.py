"""Notices a model that makes the same call with the same result, turn after turn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

WARN_AT = 3
"""From this turn in a row on, the model is told that it repeats itself."""

WARNING = (
    "\n[This very call has now given this very result {count} times in a row. Repeating it"
    " changes nothing: answer with what you have, or try something else.]"
)


class Repeats:
    """Streaks of turns in which a call gave what it gave in the turn before.

    A call whose results change (polling) has no streak, nor has one with other turns between:
    loops of that kind end at the limit of steps.
    """

    def __init__(self, streaks: dict[str, int] | None = None) -> None:
        self.streaks = dict(streaks or {})

    @property
    def longest(self) -> int:
        """Of the streaks that the last turn went on with."""
        return max(self.streaks.values(), default=0)

    def close_turn(self, results: Sequence[tuple[bytes, str]]) -> list[int]:
        """Take a turn's results as pairs of call and text; returns the streak of each."""
        by_call: dict[bytes, list[str]] = {}
        for key, text in results:
            by_call.setdefault(key, []).append(text)
        marks = {key: _mark(key, texts) for key, texts in by_call.items()}
        self.streaks = {mark: self.streaks.get(mark, 0) + 1 for mark in marks.values()}
        return [self.streaks[marks[key]] for key, _ in results]


def _mark(key: bytes, texts: list[str]) -> str:
    digest = hashlib.blake2b(key, digest_size=12)
    for text in texts:
        digest.update(b"\0" + text.encode("utf-8", "replace"))
    return digest.hexdigest()
