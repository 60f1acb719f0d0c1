"""Money limits while the database is away: Redis keeps what was left, and what is owed since.

Each reservation that PostgreSQL makes notes here what it left. While PostgreSQL is away, calls
are reserved against that, by all processes together; what they come to is added up, and is written
to PostgreSQL when it is back. The sum only grows, and PostgreSQL keeps how much of it is written:
so it can be written by anybody, at any time, again and again. What was never noted, or too long
ago, is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from redis.exceptions import RedisError

from llmbroker.per_loop import PerLoop
from tenants.limits.accounts import Account
from tenants.limits.redis_scripts import NOW, connect

log = logging.getLogger(__name__)

Standing = tuple[UUID, date]
"""A limit and the first day of its period."""

UNIT = Decimal("0.000000001")
KEPT_DAYS = 40

# ARGV: now, how long a hash is kept; of each: what is left, the ledger written, how much of it.
_NOTE = (
    NOW
    + """
for i, key in ipairs(KEYS) do
  local left, ledger, written = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  if redis.call('HGET', key, 'ledger') ~= ledger then written = '0' end
  redis.call('HSET', key, 'left', left, 'written', written, 'at', string.format('%.3f', now))
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
  local owed, written = redis.call('HGET', key, 'owed'), redis.call('HGET', key, 'written')
  left = tonumber(left) - (tonumber(owed or 0) - tonumber(written or 0))
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

# ARGV: the call, what it came to, a name for a ledger that begins here.
_OWE = """
for _, key in ipairs(KEYS) do
  redis.call('HDEL', key, ARGV[1])
  redis.call('HSETNX', key, 'ledger', ARGV[3])
  redis.call('HINCRBY', key, 'owed', ARGV[2])
end
"""

_OWED = """
local found = {}
for i, key in ipairs(KEYS) do
  found[i] = {redis.call('HGET', key, 'ledger') or '', redis.call('HGET', key, 'owed') or '0'}
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

    async def note(
        self, standings: Sequence[Standing], left: Sequence[tuple[Decimal, Account]]
    ) -> None:
        """Remember what PostgreSQL has just left of each, and what that counts of the ledger.

        Without Redis nothing is.
        """
        noted = [
            value
            for each, written in left
            for value in (_units(each), written.ledger, _units(written.total))
        ]
        try:
            await self._run(_NOTE, standings, self._now(), KEPT_DAYS * 24 * 3600, *noted)
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
            await self._run(_OWE, standings, call_id, _units(amount), uuid4().hex)
        except (RedisError, OSError) as error:
            text = "money: %s US dollars of call %s are in no budget: Redis is away too (%s)"
            log.error(text, amount, call_id, type(error).__name__)  # noqa: TRY400 - no fault of ours

    async def owed(self, standings: Sequence[Standing]) -> list[Account]:
        """What calls came to under each, written to PostgreSQL or not."""
        try:
            found = await self._run(_OWED, standings)
        except (RedisError, OSError):
            return [Account() for _ in standings]
        return [Account(ledger.decode(), int(owed) * UNIT) for ledger, owed in found]

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
