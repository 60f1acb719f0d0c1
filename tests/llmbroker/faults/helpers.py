"""Brokers over the failure wall, what is left behind in them, and ports that hold up or break."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import llmbroker
from llmbroker.models import Call
from llmbroker.routing.health import MemoryHealth
from llmbroker.routing.verdict import Cools
from tests.support.wall import Wall

HELLO = [{"role": "user", "content": "hello"}]


def model(wall: Wall, name: str, **settings: object) -> llmbroker.LLMConfig:
    options = {"parallel": 1, **settings}
    return llmbroker.LLMConfig(name, wall.base_url, name, "KEY", **options)  # type: ignore[arg-type]


def pool(wall: Wall, *names: str, **settings: object) -> llmbroker.InMemoryRegistry:
    """Models by behaviour, best first, one call at a time."""
    return llmbroker.InMemoryRegistry(
        model(wall, name, weight=1 / (1 + position), **settings)
        for position, name in enumerate(names)
    )


def make(wall: Wall, *names: str, **options: object) -> llmbroker.AsyncBroker:
    return llmbroker.AsyncBroker(
        **{"registry": pool(wall, *names), "secrets": {"KEY": "sk-wall"}, **options}
    )


def run(program: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(program(), 20))


async def settled(broker: llmbroker.AsyncBroker) -> list[Call]:
    """The journal, oldest first, once nothing is going on any more."""
    await broker._parts.engine.drain()
    return list(reversed(await broker.calls()))


async def identity_of(broker: llmbroker.AsyncBroker, cools: Cools = Cools.MODEL) -> str:
    """The name under which the first model's cooldown of that kind is known."""
    return (await broker._parts.pool.usable(None))[0].ids[cools]


def slots_taken(broker: llmbroker.AsyncBroker) -> int:
    return sum(broker._parts.engine.slots._taken.values())


class Gate:
    """Lets a test stand inside an ``await`` and decide how it ends."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def pass_through(self) -> None:
        self.reached.set()
        await self.opened.wait()


class GatedStore(llmbroker.InMemoryStore):
    """Takes as long to write an outcome as a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def record(self, call: Call) -> None:
        await self.gate.pass_through()
        await super().record(call)


class GatedHealth(MemoryHealth):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def cool(self, identity: str, *, seconds: float, asked: float | None) -> float:
        await self.gate.pass_through()
        return await super().cool(identity, seconds=seconds, asked=asked)


class BrokenError(RuntimeError):
    """What a broken port raises."""


class BrokenHealth(MemoryHealth):
    """Fails in the methods named."""

    def __init__(self, *methods: str) -> None:
        super().__init__()
        for name in methods:
            setattr(self, name, self._fail)

    async def _fail(self, *args: object, **kwargs: object) -> float:
        raise BrokenError("health is broken")
