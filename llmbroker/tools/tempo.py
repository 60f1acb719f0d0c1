"""Which functions are quick: told by how long they took before."""

from __future__ import annotations

import weakref

QUICK = 0.00025
"""Seconds. A function that waits for anything takes longer."""

TRUSTED_AFTER = 5
"""So many quick calls in a row make a function one that is quick."""


class Tempo:
    """Notes calls from any thread. A function that was slow once must earn its name anew."""

    def __init__(self) -> None:
        self._streaks: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()

    def is_quick(self, function: object) -> bool:
        """Whether its last calls were quick; False for what cannot be remembered."""
        return self._streak(function) >= TRUSTED_AFTER

    def note(self, function: object, seconds: float) -> None:
        """A call has taken ``seconds``."""
        before = self._streak(function)
        after = min(before + 1, TRUSTED_AFTER) if seconds < QUICK else 0
        if after != before:
            try:
                self._streaks[function] = after
            except TypeError:  # it has no hash, or nothing may refer to it weakly
                return

    def _streak(self, function: object) -> int:
        try:
            return self._streaks.get(function, 0)
        except TypeError:
            return 0


tempo = Tempo()
"""Of this process."""
