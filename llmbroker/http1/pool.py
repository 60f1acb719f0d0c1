"""The connections of one event loop: kept for the next request to the same origin."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque

from aiohttp.abc import AbstractResolver

from llmbroker.http1.connecting import Names, connected
from llmbroker.http1.connection import Connection
from llmbroker.http1.response import Response
from llmbroker.http1.target import Origin, Target, target_of
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.request import Request

KEPT = 30.0
"""Seconds that a connection without a request is kept."""

_FAREWELL = 1.0  # seconds that closed connections may take to end


class Pool:
    """There is no limit on connections: how many calls may be in flight is the slots' decision."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._loop = asyncio.get_running_loop()
        self._names = Names(resolver)
        self._open: set[Connection] = set()
        self._idle: defaultdict[Origin, deque[Connection]] = defaultdict(deque)
        self._sweep: asyncio.TimerHandle | None = None

    async def send(self, request: Request, *, total: float, connect: float) -> Response:
        """The answer, once its head is there. All of it may take ``total`` seconds.

        Sends once; once more on a fresh connection if a kept one died before the first byte of
        an answer. Servers close idle connections at any moment, so such a death says nothing
        about them. Raises ExchangeError.
        """
        try:
            target = target_of(request.url)
        except ValueError:
            failure = Failure(FailureKind.CONNECT, detail="this is no URL")
        else:
            return await self._send(target, request, total, connect)
        raise ExchangeError(failure)

    async def close(self) -> None:
        """Close all connections, and wait until they are."""
        if self._sweep is not None:
            self._sweep.cancel()
        closing = [connection.closed for connection in self._open]
        for connection in self._open:
            connection.abort()
        if closing:
            await asyncio.wait(closing, timeout=_FAREWELL)
        await self._names.aclose()

    async def _send(
        self, target: Target, request: Request, total: float, connect: float
    ) -> Response:
        now = self._loop.time()
        message = target.request(request.headers, request.body)
        response = None
        kept = self._take(target.origin, now)
        if kept is not None:
            response = kept.ask(message, now + total)
            await response.settled()
        if response is None or response.died_before_answering:
            fresh = await self._connect(target.origin, connect)
            response = fresh.ask(message, now + total)
            await response.settled()
        if response.failure is not None:
            raise ExchangeError(response.failure)
        return response

    async def _connect(self, origin: Origin, seconds: float) -> Connection:
        connection = await connected(origin, self._names, self._keep, seconds=seconds)
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._open.discard(connection))
        return connection

    def _take(self, origin: Origin, now: float) -> Connection | None:
        """The one used last: it is the least likely to be closed by its server."""
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()
            if connection.is_open and now - connection.idle_since < KEPT:
                return connection
            connection.abort()
        return None

    def _keep(self, connection: Connection) -> None:
        self._idle[connection.origin].append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(KEPT, self._close_old)

    def _close_old(self) -> None:
        horizon = self._loop.time() - KEPT
        for origin, kept in list(self._idle.items()):
            while kept and (kept[0].idle_since <= horizon or not kept[0].is_open):
                kept.popleft().abort()  # the first has been idle for longest
            if not kept:
                del self._idle[origin]
        self._sweep = self._loop.call_later(KEPT, self._close_old) if self._idle else None
