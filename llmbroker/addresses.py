"""Addresses that somebody else gave us: what may be reached, checked where the connection is made.

A name is resolved once, every address it has is checked, and the connection goes to a checked
one; a second look-up could answer differently. Odd spellings (``127.1``, ``0x7f000001``) need
no rule of their own, because it is the resolved address that is checked.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Forms of IPv6 that carry an IPv4 address which would be reached instead: IPv4-mapped and
# -compatible, NAT64 (RFC 6052, RFC 8215), 6to4 and Teredo.
_WRAPPERS = tuple(
    ip_network(text)
    for text in (
        "::ffff:0:0/96",
        "::/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "2001::/32",
    )
)
# Cloud metadata services outside the private ranges.
_METADATA = tuple(ip_network(text) for text in ("168.63.129.16/32", "fd00:ec2::/32"))


class AddressRefusedError(OSError):
    """The address may not be reached. An OSError, so that clients treat it as unreachable."""


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """What may be reached: public addresses over https, and what is named here.

    ``hosts`` are names that may be anything and may use http, such as a model server of one's
    own; ``networks`` are addresses that may be reached under any name; ``private`` allows all.
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    private: bool = False
    _hosts: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hosts", frozenset(map(_plain, self.hosts)))

    @classmethod
    def of(cls, allowed: Iterable[str], *, private: bool = False) -> AddressPolicy:
        """The policy of a list of host names, addresses and networks (``10.1.0.0/16``).

        Raises ValueError for what is none of them.
        """
        hosts, networks = set(), []
        for entry in filter(None, map(str.strip, allowed)):
            try:
                networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                if "/" in entry:
                    raise ValueError(f"{entry!r} is neither a host nor a network") from None
                hosts.add(entry)
        return cls(frozenset(hosts), tuple(networks), private)

    def check_url(self, url: str) -> None:
        """Refuse what the text alone shows to be out of bounds.

        Raises AddressRefusedError.
        """
        try:
            parts = urlsplit(url)
            host, _ = _plain(parts.hostname or ""), parts.port
        except ValueError:
            raise AddressRefusedError("this is no URL") from None
        if not host:
            raise AddressRefusedError("the URL names no host")
        if parts.username is not None or parts.password is not None:
            raise AddressRefusedError("the URL holds a user or a password")
        literal, named = _literal(host), self.names(host)
        if parts.scheme != "https" and not (parts.scheme == "http" and named):
            raise AddressRefusedError("only https addresses may be reached")
        if literal is not None and not named:
            self.check_address(host, literal)

    def names(self, host: str) -> bool:
        """Whether ``host``, a name or an address, may be reached wherever it is."""
        host = _plain(host)
        literal = _literal(host)
        return (
            self.private or host in self._hosts or (literal is not None and self._is_named(literal))
        )

    def check_address(self, host: str, address: Address) -> None:
        """Refuse ``address``, to which ``host`` has been resolved, unless it may be reached.

        Raises AddressRefusedError.
        """
        if self.private or _plain(host) in self._hosts or self._is_named(address):
            return
        if not is_public(address):
            raise AddressRefusedError("the host is not in the public network")

    def _is_named(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


def is_public(address: Address) -> bool:
    """Whether ``address`` is one host of the public network, and shown as what it is.

    >>> is_public(ip_address("64:ff9b::a9fe:a9fe")), is_public(ip_address("1.1.1.1"))
    (False, True)
    """
    if isinstance(address, IPv6Address) and any(address in each for each in _WRAPPERS):
        return False
    if any(address in each for each in _METADATA):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


class GuardedResolver(AbstractResolver):
    """Resolves a name once and gives only addresses that may be reached; one bad one spoils all."""

    def __init__(self, policy: AddressPolicy, inner: AbstractResolver | None = None) -> None:
        """``inner`` answers the look-ups; the system's resolver unless given."""
        self._policy = policy
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of ``host``. Raises AddressRefusedError if any may not be reached."""
        if self._inner is None:
            self._inner = aiohttp.ThreadedResolver()
        found = await self._inner.resolve(host, port, family)
        for each in found:
            self._policy.check_address(host, ip_address(each["host"].partition("%")[0]))
        return found

    async def close(self) -> None:
        """Close the resolver inside."""
        if self._inner is not None:
            await self._inner.close()


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None
