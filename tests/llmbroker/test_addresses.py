"""Addresses that tenants give: what is refused on sight, and what when it is resolved."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from llmbroker.addresses import AddressPolicy, AddressRefusedError, GuardedResolver, is_public

STRICT = AddressPolicy()


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::ffff:169.254.169.254]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b:1::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[::1]/",
        "https://[::127.0.0.1]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1%25eth0]/",
        "https://100.100.100.200/",
        "https://0.0.0.0/",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://168.63.129.16/",
        "https://user:pw@api.example.com/v1",
        "https://user:pw@10.0.0.1#@api.example.com/v1",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "https://",
        "https:///v1",
        "https://host:99999/",
        "https://[::1",
        "",
    ],
)
def test_is_refused_on_sight(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        STRICT.check_url(url)


@pytest.mark.parametrize(
    "url", ["https://api.example.com/v1", "https://API.EXAMPLE.COM./v1", "https://1.1.1.1/v1"]
)
def test_a_public_address_over_https_may_be_reached(url: str) -> None:
    STRICT.check_url(url)


class Names(AbstractResolver):
    """A resolver that knows a few names, each with answers one after another."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        addresses = self.answers[host.split(".", maxsplit=1)[0]].pop(0)
        return [
            ResolveResult(hostname=host, host=each, port=port, family=family, proto=0, flags=0)
            for each in addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["1.1.1.1", "::1"],
        ["1.1.1.1", "10.0.0.8"],
        ["fe80::1%eth0"],
        ["::ffff:10.0.0.1"],
    ],
)
def test_one_private_address_of_a_name_spoils_all(addresses: list[str]) -> None:
    resolver = GuardedResolver(STRICT, Names(dual=[addresses]))
    with pytest.raises(AddressRefusedError):
        asyncio.run(resolver.resolve("dual.example.com", 443))


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    names = Names(rebind=[["1.1.1.1"], ["127.0.0.1"]])
    found = asyncio.run(GuardedResolver(STRICT, names).resolve("rebind.example.com", 443))
    assert [each["host"] for each in found] == ["1.1.1.1"]
    assert names.asked == ["rebind.example.com"]


@pytest.mark.parametrize("host", ["2852039166", "0x7f000001", "0177.0.0.1", "127.1", "localhost"])
def test_odd_spellings_are_refused_when_the_system_resolves_them(host: str) -> None:
    async def program() -> None:
        connector = aiohttp.TCPConnector(resolver=GuardedResolver(STRICT))
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(f"http://{host}:9/")

    asyncio.run(program())


def test_an_operator_names_what_else_may_be_reached() -> None:
    policy = AddressPolicy.of(["models.internal", "10.1.0.0/16", "[::1]", " "])
    policy.check_url("http://models.internal:8000/v1")
    policy.check_url("http://10.1.2.3/v1")
    policy.check_url("http://[::1]:8000/v1")
    policy.check_address("models.internal", ip_address("192.168.0.9"))
    policy.check_address("other.example.com", ip_address("10.1.2.3"))
    with pytest.raises(AddressRefusedError):
        policy.check_url("http://10.2.0.1/v1")
    with pytest.raises(AddressRefusedError):
        policy.check_address("other.example.com", ip_address("192.168.0.9"))


def test_a_local_trial_may_reach_everything() -> None:
    policy = AddressPolicy.of([], private=True)
    policy.check_url("http://127.0.0.1:11434/v1")
    with pytest.raises(AddressRefusedError):
        policy.check_url("file:///etc/passwd")


def test_public_means_public() -> None:
    assert is_public(ip_address("2606:4700:4700::1111"))
    assert not is_public(ip_address("203.0.113.7"))
