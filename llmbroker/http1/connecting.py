"""Making connections: names looked up, addresses tried side by side, TLS."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address

import aiohappyeyeballs
from aiohttp.abc import AbstractResolver, ResolveResult

from llmbroker.addresses import AddressRefusedError
from llmbroker.http1.connection import Connection
from llmbroker.http1.target import Origin
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind

REMEMBERED = 10.0
"""Seconds that the addresses of a name are remembered."""

_MAX_NAMES = 4096
_NEXT_ADDRESS = 0.25  # seconds until the next address is tried beside the first (RFC 8305)

AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]


class Names:
    """Looks a name up once for all who ask at the same time."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver
        self._known: dict[tuple[str, int], tuple[float, list[AddressInfo]]] = {}
        self._asked: dict[tuple[str, int], asyncio.Task[list[AddressInfo]]] = {}

    async def addresses(self, host: str, port: int) -> list[AddressInfo]:
        """What ``host`` is, for a connection. Raises OSError."""
        if _is_literal(host):
            kind = socket.AF_INET6 if ":" in host else socket.AF_INET
            return [_address_info(host, port, kind)]
        known = self._known.get((host, port))
        if known is not None and asyncio.get_running_loop().time() < known[0]:
            return known[1]
        task = self._asked.get((host, port))
        if task is None:
            task = self._asked[host, port] = asyncio.ensure_future(self._look_up(host, port))
            task.add_done_callback(functools.partial(self._answered, (host, port)))
        return await asyncio.shield(task)  # one that gives up must not fail the others

    async def aclose(self) -> None:
        """Close the resolver."""
        await self._resolver.close()

    async def _look_up(self, host: str, port: int) -> list[AddressInfo]:
        found: Sequence[ResolveResult] = await self._resolver.resolve(
            host, port, family=socket.AddressFamily.AF_UNSPEC
        )
        return [_address_info(each["host"], each["port"], each["family"]) for each in found]

    def _answered(self, name: tuple[str, int], task: asyncio.Task[list[AddressInfo]]) -> None:
        self._asked.pop(name, None)
        if task.cancelled() or task.exception() is not None:
            return
        if len(self._known) >= _MAX_NAMES:
            self._known.clear()
        self._known[name] = (asyncio.get_running_loop().time() + REMEMBERED, task.result())


async def connected(
    origin: Origin, names: Names, on_idle: Callable[[Connection], None], *, seconds: float
) -> Connection:
    """A new connection within ``seconds``. Raises ExchangeError."""
    try:
        async with asyncio.timeout(seconds):
            return await _connect(origin, names, on_idle)
    except TimeoutError:
        words = "no connection in time"
    except AddressRefusedError as error:
        words = str(error)
    except (OSError, ValueError) as error:  # TLS and certificates are among the first
        reason = getattr(error, "strerror", None)
        words = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    raise ExchangeError(Failure(FailureKind.CONNECT, detail=words))


async def _connect(
    origin: Origin, names: Names, on_idle: Callable[[Connection], None]
) -> Connection:
    loop = asyncio.get_running_loop()
    addresses = await names.addresses(origin.host, origin.port)
    sock = await aiohappyeyeballs.start_connection(
        addresses, happy_eyeballs_delay=_NEXT_ADDRESS, interleave=1, loop=loop
    )
    try:
        _, connection = await loop.create_connection(
            lambda: Connection(origin, loop, on_idle),
            sock=sock,
            ssl=_tls() if origin.is_tls else None,
            server_hostname=origin.host.rstrip(".") if origin.is_tls else None,
        )
    except BaseException:
        with suppress(OSError):
            sock.close()  # unless the event loop has taken it
        raise
    return connection


@functools.cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _is_literal(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _address_info(host: str, port: int, family: int) -> AddressInfo:
    address = (host, port, 0, 0) if family == socket.AF_INET6 else (host, port)
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address
