"""Money limits while the database is away: Redis keeps what was left, and what is owed since.

Each reservation that PostgreSQL makes notes here what it left. While PostgreSQL is away, calls
are reserved against that, by all processes together; what they come to is owed, and is written
to PostgreSQL when it is back. What was never noted, or too long ago, is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from redis.exceptions import RedisError

from llmbroker.per_loop import PerLoop
from tenants.limits.redis_scripts import NOW, connect

log = logging.getLogger(__name__)

Standing = tuple[UUID, date]
"""A limit and the first day of its period."""

UNIT = Decimal("0.000000001")
KEPT_DAYS = 40

# ARGV: now, how long a hash is kept, what is left of each.
_NOTE = (
    NOW
    + """
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 'left', ARGV[2 + i], 'at', string.format('%.3f', now))
  redis.call('EXPIRE', key, ARGV[2])
end
"""
)

# ARGV: now, the call, its amount, when its reservation ends, how long a standing is known.
_RESERVE = (
    NOW
    + """
local amount = tonumber(ARGV[3])
for i, key in ipairs(KEYS) do
  local at, left = redis.call('HGET', key, 'at'), redis.call('HGET', key, 'left')
  if not at or now - tonumber(at) > tonumber(ARGV[5]) then return {i, 'unknown'} end
  left = tonumber(left) - tonumber(redis.call('HGET', key, 'owed') or 0)
  local fields = redis.call('HGETALL', key)
  for f = 1, #fields, 2 do
    local held, ends = string.match(fields[f + 1], '^(%d+) until (%d+)$')
    if held and tonumber(ends) <= now then redis.call('HDEL', key, fields[f])
    elseif held then left = left - tonumber(held) end
  end
  if amount > left then return {i, string.format('%.0f', math.max(left, 0))} end
end
local held = ARGV[3] .. ' until ' .. string.format('%.0f', now + tonumber(ARGV[4]))
for _, key in ipairs(KEYS) do redis.call('HSET', key, ARGV[2], held) end
return {0, ''}
"""
)

# ARGV: the call, what it came to.
_OWE = """
for _, key in ipairs(KEYS) do
  redis.call('HDEL', key, ARGV[1])
  redis.call('HINCRBY', key, 'owed', ARGV[2])
end
"""

_COLLECT = """
local found = {}
for i, key in ipairs(KEYS) do
  found[i] = redis.call('HGET', key, 'owed') or '0'
  redis.call('HDEL', key, 'owed')
end
return found
"""

Refusal = tuple[int, Decimal | None]
"""Which of the standings has no room, and what is left of it (None: nobody knows)."""


class Ledger:
    """The standings of all processes that use the same Redis and ``prefix``."""

    def __init__(
        self, url: str, *, prefix: str = "money:", clock: Callable[[], float] | None = None
    ) -> None:
        """``clock`` replaces the Redis server's time, for tests."""
        self._connections = PerLoop(lambda: connect(url))
        self._prefix = prefix
        self._clock = clock

    async def note(self, standings: Sequence[Standing], left: Sequence[Decimal]) -> None:
        """Remember what PostgreSQL has just left of each. Without Redis nothing is."""
        try:
            seconds = KEPT_DAYS * 24 * 3600
            await self._run(_NOTE, standings, self._now(), seconds, *map(_units, left))
        except (RedisError, OSError):
            return

    async def reserve(
        self,
        standings: Sequence[Standing],
        *,
        call_id: str,
        amount: Decimal,
        lasts: float,
        known_for: float,
    ) -> Refusal | None:
        """Reserve ``amount`` under all ``standings``, or nothing and say which refuses."""
        given = (self._now(), call_id, _units(amount), lasts, known_for)
        try:
            index, left = await self._run(_RESERVE, standings, *given)
        except (RedisError, OSError):
            return 0, None
        if int(index) == 0:
            return None
        known = None if left == b"unknown" else int(left) * UNIT
        return int(index) - 1, known

    async def owe(self, standings: Sequence[Standing], *, call_id: str, amount: Decimal) -> None:
        """The call has ended and came to ``amount``, which PostgreSQL has yet to be told."""
        try:
            await self._run(_OWE, standings, call_id, _units(amount))
        except (RedisError, OSError) as error:
            text = "money: %s US dollars of call %s are in no budget: Redis is away too (%s)"
            log.error(text, amount, call_id, type(error).__name__)  # noqa: TRY400 - no fault of ours

    async def collect(self, standings: Sequence[Standing]) -> list[Decimal]:
        """What is owed under each; who collects it has to write it to PostgreSQL."""
        try:
            found = await self._run(_COLLECT, standings)
        except (RedisError, OSError):
            return [Decimal(0) for _ in standings]
        return [int(owed) * UNIT for owed in found]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    async def _run(self, script: str, standings: Sequence[Standing], *values: Any) -> Any:
        keys = [f"{self._prefix}{{{limit}}}:{period}" for limit, period in standings]
        redis = await self._connections.get()
        return await redis.eval(script, len(keys), *keys, *values)

    def _now(self) -> str:
        return "" if self._clock is None else repr(self._clock())


def _units(amount: Decimal) -> str:
    """Billionths of a dollar, rounded up; Redis counts them exactly up to nine millions."""
    return str(-int(-amount // UNIT))
