"""What all scripts that processes share over Redis begin with: a connection, and one clock."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from redis.asyncio import Redis

# Times are the server's, because the clocks of the processes may differ, unless a test gives one.
NOW = """
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] + t[2] / 1000000
end
"""


async def connect(
    url: str, *, timeout: float = 2.0, max_connections: int = 1000
) -> AsyncGenerator[Redis, None]:
    """The connections of one event loop, for ``PerLoop``; ``timeout`` is in seconds."""
    redis: Any = Redis.from_url(
        url,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        max_connections=max_connections,
    )
    try:
        yield redis
    finally:
        await redis.aclose()
