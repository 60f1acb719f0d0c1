"""While the database is away, what was asked a moment ago is answered from memory.

Nothing is remembered in place of asking: with the database there, every question asks it, so a
key or token that was taken back is out of use at once. Only a failed question is answered from
memory, and only for as long as the journal's spool lets calls go on.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError

from tenants.database import in_thread

T = TypeVar("T")

REMEMBERED = 20_000
"""Answers, the newest: a scope in use takes four or five."""

PATIENCE = 2.0
"""Seconds to wait for a database where there is a last answer to fall back on."""

PAUSE, LONGEST_PAUSE = 1.0, 5.0
"""Seconds for which nobody asks a database again that has just failed."""


AWAY = (OperationalError, InterfaceError, TimeoutError)


def is_away(error: BaseException) -> bool:
    """Whether the database could not be asked; a lost race or a statement too slow is no outage."""
    state: str = getattr(error.__cause__, "sqlstate", None) or ""
    return isinstance(error, AWAY) and not state.startswith(("40", "55", "57014"))


class Memory:
    """The last answers, each good for ``seconds`` after it was given. For any thread or loop."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._answers: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._changing = threading.Lock()
        self._left_in_peace_until = 0.0

    @property
    def away(self) -> bool:
        """Whether the database has just failed, and is not to be asked again yet."""
        return self._clock() < self._left_in_peace_until

    async def ask(self, question: Hashable, ask: Callable[[], Awaitable[Any]]) -> Any:
        """The answer of ``ask``; the last one if the database is away and there is one."""
        known = self._recall(question)
        if known is not None and self.away:
            return known[1]
        started = self._clock()
        try:
            answer = await asyncio.wait_for(ask(), None if known is None else PATIENCE)
        except AWAY as error:
            return self._instead(question, error, started)
        except Exception:
            self._forget(question)
            raise
        return self._remembered(question, answer)

    def ask_now(self, question: Hashable, ask: Callable[[], Any]) -> Any:
        """The same for blocking code, which cannot leave off asking."""
        known = self._recall(question)
        if known is not None and self.away:
            return known[1]
        started = self._clock()
        try:
            answer = ask()
        except AWAY as error:
            return self._instead(question, error, started)
        except Exception:
            self._forget(question)
            raise
        return self._remembered(question, answer)

    async def attempt(self, work: Callable[[], T]) -> tuple[T] | None:
        """What ``work`` brings, done in a database thread; None if the database is away."""
        if self.away:
            return None
        started = self._clock()
        try:
            return (await in_thread(self._unless_away, work),)
        except AWAY as error:
            if not is_away(error):
                raise
            self._failed(started)
            return None

    def _unless_away(self, work: Callable[[], T]) -> T:
        """Those that queued for a thread behind the one that found out need not try as well."""
        if self.away:
            raise OperationalError("the database is away")
        return work()

    def _failed(self, started: float) -> None:
        """The longer a failure takes, the longer the database is left in peace."""
        if not self.away:
            now = self._clock()
            pause = max(PAUSE, 4 * (now - started))
            self._left_in_peace_until = now + min(pause, LONGEST_PAUSE)

    def _instead(self, question: Hashable, error: Exception, started: float) -> Any:
        """What was answered last."""
        if not is_away(error):
            raise error
        self._failed(started)
        known = self._recall(question)
        if known is None:
            raise error
        return known[1]

    def _forget(self, question: Hashable) -> None:
        """The database itself refuses: what it said before holds no longer."""
        with self._changing:
            self._answers.pop(question, None)

    def _recall(self, question: Hashable) -> tuple[float, Any] | None:
        known = self._answers.get(question)
        if known is None or self._clock() - known[0] > self._seconds:
            return None
        return known

    def _remembered(self, question: Hashable, answer: Any) -> Any:
        with self._changing:
            self._left_in_peace_until = 0.0
            self._answers[question] = (self._clock(), answer)
            self._answers.move_to_end(question)
            if len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        return answer


@functools.cache
def process_memory() -> Memory:
    """The one memory of this process, so that one failed question spares all others the wait."""
    return Memory(settings.JOURNAL_SPOOL_MAX_SECONDS)
