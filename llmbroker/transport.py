"""Requests with limits on time and size, over the connections of the running event loop.

Redirects are never followed: an answer that points elsewhere would take the key along.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver

from llmbroker.addresses import AddressPolicy, AddressRefusedError, GuardedResolver
from llmbroker.http1.pool import Pool
from llmbroker.http1.response import Response
from llmbroker.per_loop import PerLoop
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.request import Request


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds: to connect, to the first byte or token, between two, and for all of it."""

    connect: float = 10.0
    first_token: float = 120.0
    stall: float = 60.0
    answer: float = 600.0

    def patient(self) -> Timeouts:
        """The same for an answer that is wanted whole: its silences end with its own time."""
        return replace(self, first_token=self.answer, stall=self.answer)


@dataclass(slots=True)
class Answer:
    """A whole HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LiveAnswer:
    """An HTTP answer whose body is still arriving. Header names are in lower case."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    async def body(self) -> bytes:
        """The whole body. Raises ExchangeError when it breaks off or is too large."""
        return await self._response.body()

    async def chunk(self) -> bytes:
        """The next piece of the body, empty at its end. Raises ExchangeError when it breaks off."""
        try:
            return await self._response.piece()
        except ExchangeError as error:
            failure = error.failure
        if failure.kind is not FailureKind.INVALID_RESPONSE:
            failure = Failure(FailureKind.STREAM_CUT, detail=failure.detail)
        raise ExchangeError(failure)


class Transport:
    """Sends requests. Opens its sessions on first use, in the loop that uses it."""

    def __init__(
        self,
        timeouts: Timeouts | None = None,
        *,
        policy: AddressPolicy | None = None,
    ) -> None:
        """``policy`` says what guarded requests may reach: the public network unless given."""
        self.timeouts = timeouts or Timeouts()
        self._policy = policy or AddressPolicy()
        self._trusted = PerLoop(lambda: _open_pool(ThreadedResolver()))
        self._guarded = PerLoop(lambda: _open_pool(GuardedResolver(self._policy)))

    async def post(
        self, request: Request, *, timeout: float | None = None, guarded: bool = False
    ) -> Answer:
        """Send ``request`` and read the whole answer within ``timeout`` seconds.

        ``guarded`` refuses addresses that the policy does not allow. Raises ExchangeError when
        there is no answer; any HTTP status is an answer.
        """
        response = await self._send(request, timeout, guarded=guarded)
        return Answer(response.status, response.headers, await response.body())

    @asynccontextmanager
    async def open(
        self, request: Request, *, timeout: float | None = None, guarded: bool = False
    ) -> AsyncIterator[LiveAnswer]:
        """Send ``request``; the body is read inside the block. Leaving it early closes upstream."""
        response = await self._send(request, timeout, guarded=guarded)
        try:
            yield LiveAnswer(response)
        finally:
            response.close()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._trusted.aclose()
        await self._guarded.aclose()

    async def _send(self, request: Request, timeout: float | None, *, guarded: bool) -> Response:
        if guarded:
            self._check(request.url)
        pool = await (self._guarded if guarded else self._trusted).get()
        longest = self.timeouts.answer
        total = longest if timeout is None else min(timeout, longest)
        return await pool.send(request, total=total, connect=min(self.timeouts.connect, total))

    def _check(self, url: str) -> None:
        try:
            self._policy.check_url(url)
        except AddressRefusedError as error:
            failure = Failure(FailureKind.CONNECT, detail=str(error))
        else:
            return
        raise ExchangeError(failure)


async def _open_pool(resolver: AbstractResolver) -> AsyncGenerator[Pool, None]:
    pool = Pool(resolver)
    try:
        yield pool
    finally:
        await pool.close()
