"""Many callers at once: turns, herds, growth."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

import llmbroker
from llmbroker.models import CallStatus
from tests.llmbroker.faults.helpers import (
    HELLO,
    make,
    model,
    pool,
    run,
    slots_taken,
)
from tests.support.wall import ANSWER, Wall


def test_callers_who_wait_for_a_slot_do_not_look_the_pool_up_over_and_over(wall: Wall) -> None:
    class Counted(llmbroker.InMemoryRegistry):
        looked = 0

        async def load(self) -> list[llmbroker.LLMConfig]:
            self.looked += 1
            return await super().load()

    async def program() -> None:
        registry = Counted([model(wall, "sound", parallel=2)])
        async with make(wall, registry=registry) as broker:
            await asyncio.gather(*(broker.chat(HELLO) for _ in range(200)))
            assert registry.looked <= 5 * 200

    run(program)


def test_those_who_wait_for_the_same_moment_return_a_few_at_a_time(wall: Wall) -> None:
    async def program() -> None:
        wall.down = True
        async with make(wall, registry=pool(wall, "limits-all", parallel=None)) as broker:
            calls = [asyncio.ensure_future(broker.chat(HELLO)) for _ in range(20)]
            await asyncio.sleep(0.5)
            wall.down, limited_at = False, wall.visits[-1].at
            replies = await asyncio.gather(*calls)
            assert {reply.text for reply in replies} == {ANSWER}
            returns = [visit.at - limited_at for visit in wall.visits[20:]]
            assert len(returns) == 20
            assert min(returns) >= 1  # nobody before the time that was asked for
            assert max(Counter(int(each) for each in returns).values()) <= 8

    run(program)


def test_nothing_grows_with_the_number_of_calls(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "cut", "fails-once", "sound") as broker:

            async def call(number: int) -> None:
                with suppress(llmbroker.LLMRequestError):
                    if number % 3:
                        await broker.chat(HELLO, wait=0, operation="same")
                    else:
                        async for _ in broker.stream("hello", wait=0, operation="same"):
                            if number % 2:
                                break

            for _ in range(10):
                await asyncio.gather(*(call(number) for number in range(20)))
            gc.collect()
            await asyncio.sleep(0.05)
            await broker._parts.engine.drain()
            engine = broker._parts.engine
            assert not engine._running
            assert not engine.slots._waiting
            assert slots_taken(broker) == 0
            assert len(engine.slots._taken) <= 3
            assert len(engine.health._known) <= 3

    run(program)


@pytest.fixture
def keyboard() -> Iterator[None]:
    """Interrupts are heeded, also where a shell has started this process in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("keyboard")
def test_an_interrupt_at_the_keyboard_ends_the_call_upstream(wall: Wall) -> None:
    with llmbroker.Broker(pool(wall, "silent"), secrets={"KEY": "k"}) as broker:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            broker.ask("hello")

        assert wall.visits[0].hung_up.wait(2)
        broker.close()
        assert [row.status for row in broker.calls()] == [CallStatus.INTERRUPTED]
        assert slots_taken(broker._broker) == 0
