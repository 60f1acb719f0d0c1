"""One connection to Redis that hears of the runs somebody listens to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from agents.streams.frames import Frame, channel_of, unpacked

Tell = Callable[[UUID, Sequence[Frame]], None]

CONNECT_AGAIN_AFTER = 1.0
ASK_WHETHER_IT_LIVES = 5.0
"""Seconds without a message after which Redis is pinged."""

_ALWAYS = "broker:run-events"
"""A channel that nobody publishes on: a connection without any is closed."""

log = logging.getLogger(__name__)


class Subscription:
    """Calls ``tell(run_id, frames)``; without frames where some may have been missed."""

    def __init__(self, url: str, tell: Tell) -> None:
        self._url = url
        self._tell = tell
        self._wanted: dict[bytes, UUID] = {}
        self._pubsub: PubSub | None = None
        self._sending = asyncio.Lock()

    @property
    def is_up(self) -> bool:
        """Whether Redis would tell of an event now."""
        return self._pubsub is not None

    async def add(self, run_id: UUID) -> None:
        """Hear of a run. Its listeners are told to look once that has begun."""
        channel = channel_of(run_id)
        self._wanted[channel.encode()] = run_id
        await self._send("subscribe", channel)

    async def drop(self, run_id: UUID) -> None:
        """Hear no more of it."""
        channel = channel_of(run_id)
        self._wanted.pop(channel.encode(), None)
        await self._send("unsubscribe", channel)

    async def run(self) -> None:
        """Stay connected until cancelled."""
        while True:
            try:
                await self._connected()
            except (RedisError, OSError) as error:
                log.warning("events are not heard live: %s", type(error).__name__)
            await asyncio.sleep(CONNECT_AGAIN_AFTER)

    async def _connected(self) -> None:
        redis = Redis.from_url(
            self._url,
            socket_connect_timeout=CONNECT_AGAIN_AFTER,
            health_check_interval=ASK_WHETHER_IT_LIVES,
            retry=Retry(NoBackoff(), 0),
        )
        async with redis, redis.pubsub() as pubsub:
            await pubsub.subscribe(_ALWAYS)
            self._pubsub = pubsub
            try:
                if self._wanted:
                    await pubsub.subscribe(*self._wanted)
                while True:
                    message = await pubsub.get_message(timeout=ASK_WHETHER_IT_LIVES)
                    if message is not None:
                        self._hear(message)
            finally:
                if self._pubsub is pubsub:  # else a later connection has taken its place
                    self._pubsub = None

    def _hear(self, message: dict[str, Any]) -> None:
        run_id = self._wanted.get(message["channel"])
        if run_id is None:
            return
        if message["type"] == "subscribe":
            self._tell(run_id, ())
        elif message["type"] == "message":
            try:
                self._tell(run_id, unpacked(message["data"]))
            except ValueError:
                log.warning("something that is no event was published for run %s", run_id)

    async def _send(self, command: str, channel: str) -> None:
        if self._pubsub is None:
            return  # once it is connected, all that are wanted are subscribed
        try:
            async with asyncio.timeout(CONNECT_AGAIN_AFTER), self._sending:
                await getattr(self._pubsub, command)(channel)
        except (RedisError, OSError):
            log.debug("the connection to Redis is breaking", exc_info=True)
