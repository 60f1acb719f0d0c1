"""One question that many ask at the same time is asked once for all of them.

An answer is given only to those who asked before it was sought, so nobody gets an older one than
by asking alone: a key that was revoked is as gone for a thousand calls at once as for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

Question = tuple[asyncio.AbstractEventLoop, Hashable]


class Asking:
    """Questions under way, each of one event loop."""

    def __init__(self) -> None:
        self._next: dict[Question, asyncio.Task[Any]] = {}
        self._busy: dict[Question, asyncio.Task[Any]] = {}

    async def ask(self, question: Hashable, seek: Callable[[], Awaitable[T]]) -> T:
        """The answer of ``seek``, which runs in the context of whoever asked first."""
        key = (asyncio.get_running_loop(), question)
        task = self._next.get(key)
        if task is None:
            task = asyncio.ensure_future(self._sought(key, seek, self._busy.get(key)))
            task.add_done_callback(_looked_at)
            self._next[key] = task
        answer: T = await asyncio.shield(task)
        return answer

    async def _sought(
        self, key: Question, seek: Callable[[], Awaitable[T]], before: asyncio.Task[Any] | None
    ) -> T:
        if before is not None:
            await asyncio.wait([before])
        task = self._busy[key] = self._next.pop(key)
        try:
            return await seek()
        finally:
            if self._busy[key] is task:
                del self._busy[key]


def _looked_at(task: asyncio.Task[Any]) -> None:
    """All who asked may have gone: then nobody is told of a failure."""
    if not task.cancelled():
        task.exception()
