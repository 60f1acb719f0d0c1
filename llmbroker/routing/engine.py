"""What all attempts of one broker share, and what has to be finished after they have ended."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any

from llmbroker.latency import Latency
from llmbroker.memory import InMemoryStore
from llmbroker.ports import Gate, IntentStore, KeyWatch, PayloadStore, Secrets, Store
from llmbroker.prices import Pricing
from llmbroker.routing.alarm import Alarm
from llmbroker.routing.call import Ask
from llmbroker.routing.corrections import Corrections
from llmbroker.routing.health import Health, MemoryHealth
from llmbroker.routing.slots import Slots
from llmbroker.routing.trust import Trust
from llmbroker.transport import Transport


@dataclass(slots=True)
class Engine:
    """What every attempt needs: the parts of one broker."""

    transport: Transport
    store: Store
    health: Health
    slots: Slots
    secrets: Secrets
    clock: Callable[[], float] = time.time
    gate: Gate | None = None
    pricing: Pricing | None = None
    alarm: Alarm = field(default_factory=Alarm)
    latency: Latency = field(default_factory=Latency)
    first_token: Latency = field(default_factory=Latency)
    corrections: Corrections = field(default_factory=Corrections)
    trust: Trust = field(init=False)
    in_memory: bool = field(init=False)
    closing: bool = False
    intents: IntentStore | None = field(init=False)
    payloads: PayloadStore | None = field(init=False)
    watch: KeyWatch | None = field(init=False)
    _running: set[asyncio.Future[Any]] = field(default_factory=set)
    _left: weakref.WeakSet[asyncio.Task[Any]] = field(default_factory=weakref.WeakSet)
    _inside: int = 0
    _loop: asyncio.AbstractEventLoop | None = None
    _all_left: asyncio.Event | None = None

    def __post_init__(self) -> None:
        self.trust = Trust(self.clock)
        self.in_memory = type(self.store) is InMemoryStore and type(self.health) is MemoryHealth
        self.intents = self.store if isinstance(self.store, IntentStore) else None
        self.payloads = self.store if isinstance(self.store, PayloadStore) else None
        self.watch = self.secrets if isinstance(self.secrets, KeyWatch) else None

    def latency_of(self, ask: Ask) -> Latency:
        """How long models take until such a call shows something: whole, or its first token."""
        return self.first_token if ask.stream else self.latency

    def enter(self) -> None:
        """Let ``drain`` wait until as many have left: what has no task of its own to be tracked."""
        self._inside += 1
        self._loop = asyncio.get_running_loop()

    def leave(self) -> None:
        """What has entered has ended."""
        self._inside -= 1
        if not self._inside and self._all_left is not None:
            self._all_left.set()

    def track(self, task: asyncio.Future[Any]) -> None:
        """Keep ``task`` alive, and let ``drain`` wait for it."""
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def settle(self, work: Coroutine[Any, Any, None]) -> None:
        """Finish ``work`` even if the caller is cancelled meanwhile."""
        if self.in_memory:
            await work  # never waits, so nothing can come between
            return
        task = asyncio.ensure_future(work)
        self.track(task)
        await asyncio.shield(task)

    def leave_to_itself(self, task: asyncio.Task[Any]) -> None:
        """Let ``task`` end by itself within the time of a first token; ``drain`` does not wait."""
        self._left.add(task)
        asyncio.get_running_loop().call_later(self.transport.timeouts.first_token, task.cancel)

    def release_later(self, claims: Collection[str]) -> None:
        """Give claims back that were not used."""
        if claims:
            self.track(asyncio.ensure_future(self.health.release(sorted(claims))))

    async def drain(self) -> None:
        """Wait for everything that still has to be journaled."""
        for task in self._left:
            task.cancel()
        while self._running or self._are_inside:
            if self._are_inside:
                self._all_left = asyncio.Event()
                await self._all_left.wait()
            await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def _are_inside(self) -> bool:
        """Whether somebody is inside who can still leave: not in a child that was forked off."""
        return self._inside > 0 and self._loop is asyncio.get_running_loop()
