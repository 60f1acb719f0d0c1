"""One connection to an MCP server.

The client's scopes must be left in the task that entered them, so a connection is one task from
its opening to its end; calls come from other tasks and only use what it has opened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import httpx2
from aiohttp.abc import AbstractResolver
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from agents.tool_sources.mcp_errors import McpUnavailableError
from agents.tool_sources.mcp_transport import GuardedTransport
from llmbroker.addresses import AddressPolicy
from tenants.encryption import Secret

CONNECT_SECONDS = 10.0

T = TypeVar("T")
Use = Callable[[Client], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class Target:
    """A server as it was configured at one time: another configuration is another connection."""

    server_id: UUID
    configured_at: datetime
    policy: AddressPolicy
    url: str = field(compare=False)
    header: str = field(compare=False)
    token: Secret[str] | None = field(compare=False)
    resolver: AbstractResolver | None = field(default=None, compare=False)


class Connection:
    """Opens at once; ``gone`` is told when it has ended."""

    def __init__(
        self, target: Target, idle_seconds: float, gone: Callable[[Connection], None]
    ) -> None:
        self.target = target
        self._idle_seconds = idle_seconds
        self._gone = gone
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._used_at = time.monotonic()
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()
        self._failure: str | None = None
        self._task = asyncio.create_task(self._live())

    @property
    def is_closing(self) -> bool:
        """Whether no further call may begin on it."""
        return self._closing.is_set() or self._task.done()

    def close(self) -> None:
        """End it, after the calls that are under way."""
        self._closing.set()

    async def use(self, work: Use[T]) -> T:
        """Run ``work`` with the client."""
        self._users += 1
        self._unused.clear()
        try:
            return await work(await asyncio.shield(self._ready))
        finally:
            self._users -= 1
            self._used_at = time.monotonic()
            if not self._users:
                self._unused.set()

    async def failure(self) -> str | None:
        """Why the connection ended by itself, if it did."""
        await asyncio.wait({self._task}, timeout=1)
        return self._failure

    async def _live(self) -> None:
        try:
            await self._serve()
        except BaseException as error:
            self._failure = _reason(error)
            if not self._ready.done():
                self._ready.set_exception(McpUnavailableError(self._failure))
                self._ready.exception()  # looked at, where nobody waits any more
            if not isinstance(error, Exception):
                raise
        finally:
            self._closing.set()
            self._gone(self)

    async def _serve(self) -> None:
        target = self.target
        transport = GuardedTransport(
            target.policy, target.header, target.token, resolver=target.resolver
        )
        limits = httpx2.Timeout(CONNECT_SECONDS, read=None)
        async with (
            httpx2.AsyncClient(transport=transport, timeout=limits, trust_env=False) as http,
            Client(streamable_http_client(target.url, http_client=http), cache=None) as client,
        ):
            self._ready.set_result(client)
            while not self.is_idle():
                try:
                    async with asyncio.timeout(self._idle_seconds):
                        await self._closing.wait()
                except TimeoutError:
                    continue
                break
            await self._unused.wait()

    def is_idle(self) -> bool:
        """Whether nobody has used it for a while."""
        return not self._users and time.monotonic() - self._used_at >= self._idle_seconds


def _reason(error: BaseException) -> str:
    """The first cause inside the task group's nested errors, in words of ours."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, httpx2.TransportError) and str(error):
        return f"its server cannot be used: {error}"
    if isinstance(error, MCPError):
        return f"its server refused the connection: {error.message[:200]}"
    return "its server cannot be used"
