"""The HTTP client: one aiohttp session per event loop, with limits on time and size.

aiohttp because a POST with 1,000 in flight costs 0.2 ms of CPU with it and 22 ms with httpx
(docs/decisions.md). Redirects are never followed: an answer that points elsewhere would take
the key along.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import hdrs

from llmbroker.addresses import AddressPolicy, AddressRefusedError, GuardedResolver
from llmbroker.per_loop import PerLoop
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.request import Request

MAX_ANSWER_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds: to connect, to the first byte or token, between two, and for all of it."""

    connect: float = 10.0
    first_token: float = 120.0
    stall: float = 60.0
    answer: float = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LiveAnswer:
    """An HTTP answer whose body is still arriving."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._size = 0

    async def body(self) -> bytes:
        """The whole body. Raises ExchangeError when it breaks off or is too large."""
        return await _read(self._response)

    async def chunk(self) -> bytes:
        """The next piece of the body, empty at its end. Raises ExchangeError when it breaks off."""
        try:
            chunk = await self._response.content.readany()
        except _TRANSPORT_ERRORS as error:
            failure = Failure(FailureKind.STREAM_CUT, detail=_words(error))
        else:
            self._size += len(chunk)
            if self._size > MAX_ANSWER_BYTES:
                raise _too_large()
            return chunk
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
        self._unbounded = self._limits(self.timeouts.answer)
        self._policy = policy or AddressPolicy()
        self._trusted = PerLoop(lambda: _open_sessions(None))
        self._guarded = PerLoop(lambda: _open_sessions(GuardedResolver(self._policy)))

    async def post(
        self, request: Request, *, timeout: float | None = None, guarded: bool = False
    ) -> Answer:
        """Send ``request`` and read the whole answer within ``timeout`` seconds.

        ``guarded`` refuses addresses that the policy does not allow. Raises ExchangeError when
        there is no answer; any HTTP status is an answer.
        """
        response = await self._send(request, timeout, guarded=guarded)
        try:
            body = await _read(response)
        except BaseException:
            response.close()
            raise
        # A body read to its end has given its connection back already.
        return Answer(response.status, response.headers, body)

    @asynccontextmanager
    async def open(
        self, request: Request, *, timeout: float | None = None, guarded: bool = False
    ) -> AsyncIterator[LiveAnswer]:
        """Send ``request``; the body is read inside the block. Leaving it early closes upstream."""
        response = await self._send(request, timeout, guarded=guarded)
        try:
            yield LiveAnswer(response)
        except BaseException:
            response.close()
            raise
        finally:
            response.release()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._trusted.aclose()
        await self._guarded.aclose()

    def _check(self, url: str) -> None:
        try:
            self._policy.check_url(url)
        except AddressRefusedError as error:
            failure = Failure(FailureKind.CONNECT, detail=str(error))
        else:
            return
        raise ExchangeError(failure)

    async def _send(
        self, request: Request, timeout: float | None, *, guarded: bool
    ) -> aiohttp.ClientResponse:
        """Send once; once more on a fresh connection if a pooled one died before its first byte.

        Servers close idle connections at any moment, so such a death says nothing about them.
        """
        if guarded:
            self._check(request.url)
        sessions = await (self._guarded if guarded else self._trusted).get()
        limits = self._unbounded if timeout is None else self._limits(timeout)
        _connected.set(False)
        response = await _post(sessions.pooled, request, limits)
        if isinstance(response, Failure):
            if response.kind is FailureKind.DISCONNECTED and not _connected.get():
                response = await _post(sessions.fresh, request, limits)
            if isinstance(response, Failure):
                raise ExchangeError(response)
        return response

    def _limits(self, timeout: float) -> aiohttp.ClientTimeout:
        total = min(timeout, self.timeouts.answer)
        connect = min(self.timeouts.connect, total)
        # sock_connect leaves the lookup of the name out; nothing waits in aiohttp's own pool.
        return aiohttp.ClientTimeout(total=total, connect=connect, sock_connect=connect)


# Whether the request under way has made a connection of its own. Set by the connector, in the
# task that sends; aiohttp's own tracing would tell it too, at the price of ten awaits a request.
_connected: ContextVar[bool] = ContextVar("llmbroker_connected", default=False)


class _Connector(aiohttp.TCPConnector):
    """Notes when it makes a connection rather than taking one that was kept."""

    async def _create_connection(self, *args: Any, **kwargs: Any) -> Any:
        _connected.set(True)
        return await super()._create_connection(*args, **kwargs)


class _Sessions:
    """One session that keeps connections for the next request, and one that never does."""

    def __init__(self, resolver: aiohttp.abc.AbstractResolver | None) -> None:
        # limit=0: how many calls may be in flight is the pool's decision, per model.
        self.pooled = _session(_Connector(limit=0, keepalive_timeout=30, resolver=resolver))
        self.fresh = _session(_Connector(limit=0, force_close=True, resolver=resolver))

    async def close(self) -> None:
        """Close both."""
        await self.pooled.close()
        await self.fresh.close()


async def _open_sessions(
    resolver: aiohttp.abc.AbstractResolver | None,
) -> AsyncGenerator[_Sessions, None]:
    sessions = _Sessions(resolver)
    try:
        yield sessions
    finally:
        await sessions.close()


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    )


# Where these are caught, the ExchangeError is raised after the handler has ended: aiohttp's
# errors and tracebacks hold the request's headers, and a chained one would carry the key along.
_TRANSPORT_ERRORS = (aiohttp.ClientError, TimeoutError, OSError, ValueError)


async def _post(
    session: aiohttp.ClientSession,
    request: Request,
    limits: aiohttp.ClientTimeout,
) -> aiohttp.ClientResponse | Failure:
    try:
        return await session.post(
            request.url,
            data=request.body,
            headers=request.headers,
            timeout=limits,
            allow_redirects=False,
        )
    except _TRANSPORT_ERRORS as error:
        return _failure(error)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    length = response.content_length
    if length is not None and length <= MAX_ANSWER_BYTES and not _is_packed(response):
        try:
            return await response.read()
        except _TRANSPORT_ERRORS as error:
            failure = _failure(error)
        raise ExchangeError(failure)
    return await _read_bounded(response)


def _is_packed(response: aiohttp.ClientResponse) -> bool:
    return hdrs.CONTENT_ENCODING in response.headers


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise _too_large()
            chunks.append(chunk)
    except _TRANSPORT_ERRORS as error:
        failure = _failure(error)
    else:
        return b"".join(chunks)
    raise ExchangeError(failure)


def _too_large() -> ExchangeError:
    detail = f"the answer is larger than {MAX_ANSWER_BYTES // 2**20} MB"
    return ExchangeError(Failure(FailureKind.INVALID_RESPONSE, detail=detail))


def _failure(error: BaseException) -> Failure:
    """What a transport error means."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Failure(FailureKind.CONNECT, detail="no connection in time")
    if isinstance(error, TimeoutError):
        return Failure(FailureKind.TIMEOUT)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return Failure(FailureKind.CONNECT, detail=_words(error))
    return Failure(FailureKind.DISCONNECTED, detail=_words(error))


def _words(error: BaseException) -> str:
    """The error's kind and the system's words for it, without addresses or headers."""
    reason = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__
