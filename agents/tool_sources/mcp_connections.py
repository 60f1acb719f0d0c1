"""Connections to MCP servers, on one event loop of this process.

The client's scopes must be left in the task that entered them, so a connection is one task from
its opening to its end; calls come from other tasks and only use what it has opened.
"""

from __future__ import annotations

import asyncio
import os
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
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

from agents.tool_sources.mcp_transport import GuardedTransport
from llmbroker.addresses import AddressPolicy
from llmbroker.loop_thread import LoopThread
from tenants.encryption import Secret

IDLE_SECONDS = 60.0
CONNECT_SECONDS = 10.0

T = TypeVar("T")
Use = Callable[[Client], Awaitable[T]]


class McpUnavailableError(Exception):
    """The server cannot be used now; the reason in words that hold nothing of the request."""


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


class McpConnections:
    """At most one connection per target, opened on first use and closed when it is idle."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._thread = LoopThread()
        self._open: dict[Target, _Connection] = {}
        self._process = os.getpid()

    def use(self, target: Target, work: Use[T], *, timeout: float) -> T:
        """The value of ``work`` on the target's connection, for blocking code.

        Raises McpUnavailableError, and MCPError for what the server refuses.
        """
        return self._thread.run(self._use(target, work, timeout))

    async def _use(self, target: Target, work: Use[T], timeout: float) -> T:
        try:
            async with asyncio.timeout(timeout):
                try:
                    return await self._once(target, work)
                except MCPError as error:
                    if not _is_over(error):
                        raise
                # The server has forgotten the session, so it has not run the call either.
                return await self._once(target, work)
        except TimeoutError:
            reason = f"its server did not answer within {timeout:g} seconds"
        raise McpUnavailableError(reason)

    async def _once(self, target: Target, work: Use[T]) -> T:
        connection = self._connection(target)
        try:
            return await connection.use(work)
        except MCPError as error:
            if not (_is_over(error) or error.code == CONNECTION_CLOSED):
                raise  # an answer: the session is sound
            connection.close()
            reason = await connection.failure() if error.code == CONNECTION_CLOSED else None
            if reason is None:
                raise
        except BaseException:
            connection.close()  # the next call begins anew rather than on a doubtful session
            raise
        raise McpUnavailableError(reason)

    def _connection(self, target: Target) -> _Connection:
        if self._process != os.getpid():  # a child of a fork has no part in its parent's
            self._open, self._process = {}, os.getpid()
        connection = self._open.get(target)
        if connection is None or connection.is_closing:
            connection = self._open[target] = _Connection(target, self._idle_seconds, self._forget)
        return connection

    def _forget(self, connection: _Connection) -> None:
        if self._open.get(connection.target) is connection:
            del self._open[connection.target]


class _Connection:
    def __init__(
        self, target: Target, idle_seconds: float, gone: Callable[[_Connection], None]
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


def _is_over(error: MCPError) -> bool:
    return error.code == INVALID_REQUEST and error.message == "Session terminated"


def _reason(error: BaseException) -> str:
    """The first cause inside the task group's nested errors, in words of ours."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, httpx2.TransportError) and str(error):
        return f"its server cannot be used: {error}"
    if isinstance(error, MCPError):
        return f"its server refused the connection: {error.message[:200]}"
    return "its server cannot be used"


connections = McpConnections()
"""Those of this process; nothing is opened before the first call."""
