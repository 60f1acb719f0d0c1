"""Which models this process has seen answer lately. Others are tried by one caller at a time."""

from __future__ import annotations

from collections.abc import Callable

TRUST_FOR = 300.0
"""Seconds that one answer is remembered."""


class Trust:
    """Remembers when each identity last answered."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answered: dict[str, float] = {}

    def earn(self, identity: str) -> None:
        """It has answered."""
        self._answered[identity] = self._clock()

    def lose(self, identity: str) -> None:
        """It has failed, or is overdue."""
        self._answered.pop(identity, None)

    def holds(self, identity: str) -> bool:
        """Whether it has answered lately and not failed since."""
        answered = self._answered.get(identity)
        return answered is not None and self._clock() - answered < TRUST_FOR
