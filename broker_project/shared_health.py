"""llmbroker.routing.health.Health over Redis: what one process learns, all know.

Without Redis each process goes on with what it knows itself, and says so once.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from redis.asyncio import Redis
from redis.exceptions import RedisError

from llmbroker.per_loop import PerLoop
from llmbroker.routing.health import (
    FORGET_AFTER,
    MAX_ASKED,
    MAX_COOLDOWN,
    Cooldown,
    MemoryHealth,
)
from llmbroker.routing.trust import TRUST_FOR
from tenants.limits.redis_scripts import NOW, connect

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

RETRY_REDIS_AFTER = 5.0
"""Seconds after a failure of Redis in which it is not asked again."""

_TIMEOUT = 1.0

# Every script is one atomic round trip. Times are the server's unless a clock is injected
# (ARGV[1]), because the clocks of the processes may differ; callers get them as seconds from now.
# KEYS[1] exists while anything at all is cooling, so that a healthy pool costs one look.
_LOOK = (
    NOW
    + """
if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
local found = {}
for i = 2, #KEYS do
  local c = redis.call('HMGET', KEYS[i], 'until', 'streak', 'probe')
  if c[1] then
    found[#found + 1] = {i - 2, tostring(c[1] - now), c[2], tostring((c[3] or 0) - now)}
  end
end
return found
"""
)

# The same rule as llmbroker.routing.health.next_deadline; one conformance suite holds both.
_COOL = (
    NOW
    + """
local seconds, asked, spread = tonumber(ARGV[2]), tonumber(ARGV[3]), 1 + tonumber(ARGV[4]) / 4
local wanted = math.min(asked, tonumber(ARGV[6])) * spread
local c = redis.call('HMGET', KEYS[2], 'until', 'streak')
local deadline, streak = tonumber(c[1] or 0), tonumber(c[2] or 0)
if now < deadline then
  deadline = math.max(deadline, now + wanted)
else
  streak = streak + 1
  local own = seconds * 2 ^ math.min(streak - 1, 16)
  own = math.min(own, math.max(seconds, tonumber(ARGV[5]))) * spread
  deadline = now + math.max(own, wanted)
  redis.call('HDEL', KEYS[2], 'probe', 'answered')
end
redis.call('HSET', KEYS[2], 'until', string.format('%.6f', deadline), 'streak', streak)
local ttl = math.ceil((deadline - now + tonumber(ARGV[7])) * 1000)
redis.call('PEXPIRE', KEYS[2], ttl)
if redis.call('PTTL', KEYS[1]) < ttl then redis.call('SET', KEYS[1], 1, 'PX', ttl) end
return tostring(deadline - now)
"""
)

# 'answered' is until when an answer makes claims needless: a process that starts anew asks.
_CLAIM = (
    NOW
    + """
local c = redis.call('HMGET', KEYS[1], 'until', 'probe', 'answered')
if now < tonumber(c[1] or 0) or now < tonumber(c[2] or 0) then return 0 end
if not c[1] and now < tonumber(c[3] or 0) then return 1 end
redis.call('HSET', KEYS[1], 'probe', string.format('%.6f', now + tonumber(ARGV[2])))
if not c[1] then redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[2] * 1000)) end
return 1
"""
)

_CLEAR = (
    NOW
    + """
for i = 1, #KEYS do
  redis.call('DEL', KEYS[i])
  redis.call('HSET', KEYS[i], 'answered', string.format('%.6f', now + tonumber(ARGV[2])))
  redis.call('PEXPIRE', KEYS[i], math.ceil(ARGV[2] * 1000))
end
"""
)

_RELEASE = "for i = 1, #KEYS do redis.call('HDEL', KEYS[i], 'probe', 'answered') end"


class SharedHealth:
    """Health of all processes that use the same Redis and ``prefix``."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "llmbroker:health:",
        clock: Callable[[], float] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """``clock`` replaces the Redis server's time, for tests."""
        self._connections = PerLoop(lambda: connect(url, timeout=_TIMEOUT, max_connections=50))
        self._any = f"{prefix}any"
        self._prefix = prefix
        self._clock = clock
        self._jitter = jitter
        self._alone = MemoryHealth(clock or time.time, jitter)
        self._alone_until = 0.0
        self._is_alone = False

    async def cooldowns(self, ids: Sequence[str]) -> Mapping[str, Cooldown]:
        """See Health."""

        asked = list(dict.fromkeys(ids))

        async def look(redis: Redis) -> Mapping[str, Cooldown]:
            keys = [self._any, *(self._prefix + each for each in asked)]
            rows = await redis.eval(_LOOK, len(keys), *keys, self._now())
            now = self._local_now()
            return {
                asked[int(row[0])]: Cooldown(now + float(row[1]), int(row[2]), now + float(row[3]))
                for row in rows
            }

        return await self._shared(look, lambda: self._alone.cooldowns(ids))

    async def cool(self, identity: str, *, seconds: float, asked: float | None) -> float:
        """See Health."""

        async def cool(redis: Redis) -> float:
            keys = (self._any, self._prefix + identity)
            limits = (MAX_COOLDOWN, MAX_ASKED, FORGET_AFTER)
            values = (self._now(), seconds, asked or 0.0, self._jitter(), *limits)
            return self._local_now() + float(await redis.eval(_COOL, 2, *keys, *values))

        # Told to both: if Redis goes away, this process still knows what it saw itself.
        own = await self._alone.cool(identity, seconds=seconds, asked=asked)
        return await self._shared(cool, lambda: _just(own))

    async def clear(self, ids: Sequence[str]) -> None:
        """See Health."""

        async def clear(redis: Redis) -> None:
            keys = [self._prefix + each for each in ids]
            await redis.eval(_CLEAR, len(keys), *keys, self._now(), TRUST_FOR)

        await self._alone.clear(ids)
        if ids:
            await self._shared(clear, lambda: _just(None))

    async def claim_probe(self, identity: str, *, lease: float) -> bool:
        """See Health."""

        async def claim(redis: Redis) -> bool:
            key = self._prefix + identity
            return bool(await redis.eval(_CLAIM, 1, key, self._now(), lease))

        return await self._shared(claim, lambda: self._alone.claim_probe(identity, lease=lease))

    async def release(self, ids: Sequence[str]) -> None:
        """See Health."""

        async def release(redis: Redis) -> None:
            await redis.eval(_RELEASE, len(ids), *(self._prefix + each for each in ids))

        await self._alone.release(ids)
        if ids:
            await self._shared(release, lambda: _just(None))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    async def _shared(
        self,
        work: Callable[[Redis], Awaitable[Result]],
        alone: Callable[[], Awaitable[Result]],
    ) -> Result:
        if time.monotonic() < self._alone_until:
            return await alone()
        try:
            result = await work(await self._connections.get())
        except (RedisError, OSError) as error:
            self._alone_until = time.monotonic() + RETRY_REDIS_AFTER
            if not self._is_alone:
                self._is_alone = True
                logger.warning(
                    "Redis is away (%s): cooldowns are not shared until it is back",
                    type(error).__name__,
                )
            return await alone()
        if self._is_alone:
            self._is_alone = False
            logger.warning("Redis is back: cooldowns are shared again")
        return result

    def _now(self) -> str:
        return "" if self._clock is None else repr(self._clock())

    def _local_now(self) -> float:
        return (self._clock or time.time)()


async def _just(value: Result) -> Result:
    return value
