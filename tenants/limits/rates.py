"""Rates and concurrency in Redis: one atomic script takes all of a call's rules, or none.

A rule is a window that slides: what was taken counts until it is given back or ``seconds``
have passed, so no span of that length ever holds more than the limit. For concurrency the
window is the time after which a call that never came back counts as dead.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from redis.exceptions import RedisError

from llmbroker.per_loop import PerLoop
from tenants.limits.redis_scripts import NOW, connect

log = logging.getLogger(__name__)

_FORGET = """
local function forget(z, h, seconds)
  local gone = redis.call('ZRANGEBYSCORE', z, '-inf', now - seconds)
  for _, id in ipairs(gone) do
    redis.call('HINCRBY', h, 'total', -tonumber(redis.call('HGET', h, id) or 0))
    redis.call('HDEL', h, id)
    redis.call('ZREM', z, id)
  end
  return tonumber(redis.call('HGET', h, 'total') or 0)
end
"""

# When enough of what was taken has passed out of the window.
_WAIT = """
local function wait(z, h, seconds, needed)
  local oldest = redis.call('ZRANGE', z, 0, 999, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    needed = needed - tonumber(redis.call('HGET', h, oldest[i]) or 0)
    if needed <= 0 then return oldest[i + 1] + seconds - now end
  end
  return -1
end
"""

_ADMIT = (
    NOW
    + _FORGET
    + _WAIT
    + """
local id, left = ARGV[2], {}
for i = 1, #KEYS / 2 do
  local z, h = KEYS[2 * i - 1], KEYS[2 * i]
  local limit, cost, seconds = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]),
    tonumber(ARGV[3 * i + 2])
  local total = forget(z, h, seconds)
  if total + cost > limit then
    local reset = cost > limit and -1 or wait(z, h, seconds, total + cost - limit)
    return {i, tostring(math.max(limit - total, 0)), tostring(reset)}
  end
end
for i = 1, #KEYS / 2 do
  local z, h, seconds = KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[3 * i + 2])
  redis.call('ZADD', z, string.format('%.6f', now), id)
  redis.call('HSET', h, id, ARGV[3 * i + 1])
  redis.call('HINCRBY', h, 'total', ARGV[3 * i + 1])
  redis.call('EXPIRE', z, seconds + 60)
  redis.call('EXPIRE', h, seconds + 60)
end
return {0, '0', '0'}
"""
)

# ARGV: now, id, and what each rule's call came to; nothing given back leaves the set.
_SETTLE = (
    NOW
    + _FORGET
    + """
local id = ARGV[2]
for i = 1, #KEYS / 2 do
  local z, h, cost = KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[2 + i])
  local taken = tonumber(redis.call('HGET', h, id) or -1)
  if taken >= 0 then
    redis.call('HINCRBY', h, 'total', cost - taken)
    if cost > 0 then
      redis.call('HSET', h, id, cost)
    else
      redis.call('HDEL', h, id)
      redis.call('ZREM', z, id)
    end
  end
end
"""
)

_STANDING = (
    NOW
    + _FORGET
    + _WAIT
    + """
local found = {}
for i = 1, #KEYS / 2 do
  local z, h, seconds = KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[i + 1])
  local total = forget(z, h, seconds)
  found[i] = {tostring(total), tostring(total > 0 and wait(z, h, seconds, total) or 0)}
end
return found
"""
)


@dataclass(frozen=True, slots=True)
class Rule:
    """``limit`` within any ``seconds``; ``cost`` is what this call takes of it.

    ``measures``: requests stay counted when the call has ended, calls do not, tokens become
    what they were.
    """

    key: str
    measures: Literal["requests", "tokens", "calls"]
    limit: int
    seconds: int
    cost: int = 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which rule has no room, what is left of it, and when there is enough (None: never)."""

    rule: Rule
    remaining: int
    reset_after: float | None


class Rates:
    """The rules of all processes that use the same Redis and ``prefix``."""

    def __init__(
        self, url: str, *, prefix: str = "limits:", clock: Callable[[], float] | None = None
    ) -> None:
        """``clock`` replaces the Redis server's time, for tests."""
        self._connections = PerLoop(lambda: connect(url))
        self._prefix = prefix
        self._clock = clock
        self._warned_at = 0.0

    async def take(self, call_id: str, rules: Sequence[Rule]) -> Refusal | None:
        """Take all of ``rules``, or none and say which refused. Without Redis none refuses."""
        values = [value for rule in rules for value in (rule.limit, rule.cost, rule.seconds)]
        answer = await self._run(_ADMIT, rules, call_id, *values)
        if answer is None or int(answer[0]) == 0:
            return None
        reset = float(answer[2])
        rule = rules[int(answer[0]) - 1]
        return Refusal(rule, int(float(answer[1])), reset if reset >= 0 else None)

    async def settle(self, call_id: str, rules: Sequence[Rule], costs: Sequence[int]) -> None:
        """Replace what ``take`` took by what the call came to; 0 gives it all back."""
        await self._run(_SETTLE, rules, call_id, *costs)

    async def standing(self, rules: Sequence[Rule]) -> list[tuple[int, float]]:
        """What is taken of each rule now, and in how many seconds all of it is free."""
        values = [rule.seconds for rule in rules]
        answer = await self._run(_STANDING, rules, *values)
        if answer is None:
            return [(0, 0.0) for _ in rules]
        return [(int(float(taken)), max(float(reset), 0.0)) for taken, reset in answer]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    async def _run(self, script: str, rules: Sequence[Rule], *values: Any) -> Any:
        keys = [
            f"{self._prefix}{{{rule.key}}}:{part}" for rule in rules for part in ("order", "costs")
        ]
        now = "" if self._clock is None else repr(self._clock())
        try:
            redis = await self._connections.get()
            return await redis.eval(script, len(keys), *keys, now, *values)
        except (RedisError, OSError) as error:
            self._warn(error)
            return None

    def _warn(self, error: Exception) -> None:
        if time.monotonic() - self._warned_at > 60:
            self._warned_at = time.monotonic()
            log.warning(
                "Redis is away (%s): rates are not limited until it is back; money is",
                type(error).__name__,
            )
