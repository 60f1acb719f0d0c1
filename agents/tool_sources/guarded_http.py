"""HTTP to addresses that tenants gave: each connection checked, nothing followed, all bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractResolver

from llmbroker.addresses import AddressPolicy, AddressRefusedError, GuardedResolver

MAX_ANSWER_BYTES = 1024 * 1024


class UnreachableError(Exception):
    """There is no answer; the reason in words that hold nothing of the request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, whatever its status."""

    status: int
    content_type: str
    body: bytes


def guarded_session(
    policy: AddressPolicy, resolver: AbstractResolver | None = None
) -> aiohttp.ClientSession:
    """A session that connects only where ``policy`` allows; ``resolver`` answers its look-ups."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, resolver=GuardedResolver(policy, resolver)),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "llmbroker"},
        trust_env=False,
    )


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    policy: AddressPolicy,
    timeout: float,
    resolver: AbstractResolver | None = None,
) -> Answer:
    """Send once, and read the whole answer within ``timeout`` seconds. Raises UnreachableError."""
    limits = aiohttp.ClientTimeout(total=timeout)
    try:
        policy.check_url(url)
        async with (
            guarded_session(policy, resolver) as session,
            session.post(
                url, data=body, headers=headers, timeout=limits, allow_redirects=False
            ) as response,
        ):
            return Answer(response.status, response.content_type, await _read(response))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        reason = reason_of(error)
    raise UnreachableError(reason)  # outside the handler: aiohttp's errors hold the headers


def reason_of(error: BaseException) -> str:
    """Why there is no answer, without a host, an address or a header."""
    refused = (AddressRefusedError, aiohttp.InvalidURL)
    if isinstance(error, refused) or isinstance(getattr(error, "os_error", None), refused):
        return "its address may not be reached"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "it could not be reached"
    if isinstance(error, TooLargeError):
        return f"its answer is larger than {MAX_ANSWER_BYTES // 1024} KB"
    return "the connection broke off"


class TooLargeError(aiohttp.ClientError):
    """More was sent than is read."""


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise TooLargeError
    return bytes(body)
