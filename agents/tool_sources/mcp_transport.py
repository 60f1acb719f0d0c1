"""The MCP client's HTTP over our guarded session: its own would connect anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import aiohttp
import httpx2
from aiohttp.abc import AbstractResolver

from agents.tool_sources.guarded_http import guarded_session, reason_of
from llmbroker.addresses import AddressPolicy
from tenants.encryption import Secret

MAX_ANSWER_BYTES = 4 * 1024 * 1024

# What aiohttp sets for itself, or undoes before we see the answer.
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
_UNDONE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Every request, and so every redirect that the client follows, is checked and connects to
    the address that was checked. The token is added here, so that the client never holds it."""

    def __init__(
        self,
        policy: AddressPolicy,
        header: str = "Authorization",
        token: Secret[str] | None = None,
        *,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._policy = policy
        self._header = header
        self._token = token
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = guarded_session(self._policy, self._resolver)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send ``request``. Raises ConnectError with a reason that holds nothing of it."""
        if request.method == "GET" and "last-event-id" not in request.headers:
            return httpx2.Response(405)  # a stream for what servers say unasked: we have no use
        try:
            response = await self._send(request)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = reason_of(error)
        else:
            kept = [(k, v) for k, v in response.headers.items() if k.lower() not in _UNDONE]
            return httpx2.Response(response.status, headers=kept, stream=_Body(response))
        raise httpx2.ConnectError(reason)

    async def _send(self, request: httpx2.Request) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the transport is not open")
        url = str(request.url)
        self._policy.check_url(url)
        limits = request.extensions.get("timeout", {})
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _OURS}
        return await self._session.request(
            request.method,
            url,
            data=await request.aread(),
            headers={**headers, **self._auth()},
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=limits.get("connect"), sock_read=limits.get("read")
            ),
            allow_redirects=False,
        )

    def _auth(self) -> dict[str, str]:
        if self._token is None:
            return {}
        word = "Bearer " if self._header == "Authorization" else ""
        return {self._header: word + self._token.reveal()}


class _Body(httpx2.AsyncByteStream):
    """An answer as it arrives, up to the size that is read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._response.content.iter_any():
                size += len(chunk)
                if size > MAX_ANSWER_BYTES:
                    break
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = reason_of(error)
        else:
            if size <= MAX_ANSWER_BYTES:
                return
            reason = f"its answer is larger than {MAX_ANSWER_BYTES // 1024} KB"
        raise httpx2.ReadError(reason)

    async def aclose(self) -> None:
        self._response.close()
