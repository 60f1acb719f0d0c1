"""Connections to MCP servers, on one event loop of this process."""

from __future__ import annotations

import asyncio
import os
from typing import TypeVar

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

from agents.tool_sources.mcp_connection import Connection, Target, Use
from agents.tool_sources.mcp_errors import McpUnavailableError
from llmbroker.loop_thread import LoopThread

IDLE_SECONDS = 60.0

T = TypeVar("T")


class McpConnections:
    """At most one connection per target, opened on first use and closed when it is idle."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._thread = LoopThread()
        self._open: dict[Target, Connection] = {}
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

    def _connection(self, target: Target) -> Connection:
        if self._process != os.getpid():  # a child of a fork has no part in its parent's
            self._open, self._process = {}, os.getpid()
        connection = self._open.get(target)
        if connection is None or connection.is_closing:
            connection = self._open[target] = Connection(target, self._idle_seconds, self._forget)
        return connection

    def _forget(self, connection: Connection) -> None:
        if self._open.get(connection.target) is connection:
            del self._open[connection.target]


def _is_over(error: MCPError) -> bool:
    return error.code == INVALID_REQUEST and error.message == "Session terminated"


connections = McpConnections()
"""Those of this process; nothing is opened before the first call."""
