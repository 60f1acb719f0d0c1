"""One for all streams of an event loop: one subscription to Redis, one look at the table.

Redis tells at once. The table is looked at all the same, seldom while Redis answers and often
while it does not: what a broken connection has lost is found there. With every round callers
are checked again, and the streams of those who may no longer listen end.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from django.conf import settings
from django.db import Error

from agents.streams import reading
from agents.streams.frames import Frame
from agents.streams.subscription import Subscription
from llmbroker.per_loop import PerLoop
from tenants.caller import Caller
from tenants.database import in_thread

ROUND = 1.0
"""Seconds between two checks of callers, and without Redis between two looks for news."""

LOOK_EVERY = 10
"""Rounds between two looks for news while Redis tells of them."""

UNCHECKED = 30.0
"""Seconds after which nobody listens on whose right to it could not be checked."""

FAREWELL, FAREWELLS = 0.5, 3
"""Seconds that a task may take to end, and how often it is told to: Redis's client may turn a
cancel into a timeout of its own."""

HEARD = 256
"""Events kept for a stream whose client is slow. What is lost then, it reads from the table."""

log = logging.getLogger(__name__)


class Listener:
    """What one stream hears of its run."""

    def __init__(self, run_id: UUID, caller: Caller) -> None:
        self.run_id = run_id
        self.caller = caller
        self.position = 0
        self.refused = False
        self._frames: deque[Frame] = deque(maxlen=HEARD)
        self._look = False
        self._news = asyncio.Event()

    def tell(self, frames: Sequence[Frame] = ()) -> None:
        """Events that happened; without any, that the table may hold some."""
        self._frames.extend(frames)
        self._look = self._look or not frames
        self._news.set()

    def refuse(self) -> None:
        """Its caller may no longer listen, or the run is gone."""
        self.refused = True
        self._news.set()

    async def news(self, timeout: float) -> list[Frame] | None:
        """What was told since the last call, nothing if that is for the table to say.

        None if there was silence for ``timeout`` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._news.wait()
        except TimeoutError:
            return None
        self._news.clear()
        frames = [] if self._look else list(self._frames)
        self._frames.clear()
        self._look = False
        return frames


class Hub:
    """The listeners of one event loop. It works while there are any."""

    def __init__(self, redis_url: str) -> None:
        self._listeners: defaultdict[UUID, set[Listener]] = defaultdict(set)
        self._subscription = Subscription(redis_url, self._tell)
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def listening(self, run_id: UUID, caller: Caller) -> AsyncIterator[Listener]:
        """Hear what happens to a run from now on."""
        listener = Listener(run_id, caller)
        self._listeners[run_id].add(listener)
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._subscription.run()),
                asyncio.create_task(self._rounds()),
            ]
        try:
            await self._subscription.add(run_id)
            yield listener
        finally:
            self._listeners[run_id].discard(listener)
            if not self._listeners[run_id]:
                del self._listeners[run_id]
                await self._subscription.drop(run_id)
            if not self._listeners:
                await self.close()

    async def close(self) -> None:
        """End what works behind the streams. A task that overhears a cancel gets another."""
        tasks, self._tasks = set(self._tasks), []
        for _ in range(FAREWELLS):
            for task in tasks:
                task.cancel()
            if tasks:
                _, tasks = await asyncio.wait(tasks, timeout=FAREWELL)

    def _tell(self, run_id: UUID, frames: Sequence[Frame]) -> None:
        for listener in self._listeners.get(run_id, ()):
            listener.tell(frames)

    def _all(self) -> list[Listener]:
        return [each for listeners in self._listeners.values() for each in listeners]

    async def _rounds(self) -> None:
        loop = asyncio.get_running_loop()
        checked, number = loop.time(), 0
        while True:
            await asyncio.sleep(ROUND)
            number += 1
            try:
                await self._check_callers()
                if number % LOOK_EVERY == 0 or not self._subscription.is_up:
                    await self._look_for_news()
                checked = loop.time()
            except Error as error:
                log.warning("event streams cannot ask the database: %s", type(error).__name__)
                if loop.time() - checked > UNCHECKED:
                    for listener in self._all():
                        listener.refuse()

    async def _check_callers(self) -> None:
        listeners = self._all()
        allowed = await in_thread(reading.allowed, {each.caller for each in listeners})
        for listener in listeners:
            if listener.caller not in allowed:
                listener.refuse()

    async def _look_for_news(self) -> None:
        listeners = self._all()  # those that come while the question is asked are not in it
        newest = await in_thread(reading.latest, {each.run_id for each in listeners})
        for listener in listeners:
            if listener.run_id not in newest:
                listener.refuse()
            elif newest[listener.run_id] > listener.position:
                listener.tell()


async def _open() -> AsyncGenerator[Hub, None]:
    hub = Hub(settings.REDIS_URL)
    try:
        yield hub
    finally:
        await hub.close()


_hubs = PerLoop(_open)


async def current_hub() -> Hub:
    """The hub of the running event loop."""
    return await _hubs.get()
