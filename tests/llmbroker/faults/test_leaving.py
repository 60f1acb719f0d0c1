"""Callers who go away, and brokers closed under them, leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from contextlib import suppress

import pytest

import llmbroker
from llmbroker.models import Call, CallStatus
from tests.llmbroker.faults.helpers import (
    HELLO,
    GatedHealth,
    GatedStore,
    make,
    pool,
    run,
    settled,
    slots_taken,
)
from tests.support.wall import Wall


def test_a_caller_s_own_timeout_ends_the_call_at_once(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "silent") as broker:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await broker.chat(HELLO)
            (row,) = await settled(broker)
            assert row.status is CallStatus.INTERRUPTED
            assert slots_taken(broker) == 0
            assert await asyncio.to_thread(wall.visits[0].hung_up.wait, 2)
            assert (await broker.snapshot())["silent"].usable

    run(program)


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05])
@pytest.mark.parametrize("streamed", [False, True], ids=["chat", "stream"])
def test_a_call_cancelled_at_any_moment_leaves_nothing_behind(
    wall: Wall, delay: float, streamed: bool
) -> None:
    async def program() -> None:
        async with make(wall, "fails-once", "sound", hedge_after=0.004) as broker:

            async def call() -> None:
                if streamed:
                    async with broker.stream("hello") as stream:
                        async for _ in stream:
                            pass
                else:
                    await broker.chat(HELLO)

            for _ in range(20):
                task = asyncio.ensure_future(call())
                await asyncio.sleep(delay)
                task.cancel()
                await asyncio.wait([task])
            rows = await settled(broker)
            assert slots_taken(broker) == 0
            assert {row.status for row in rows}.isdisjoint({CallStatus.STARTED})

    run(program)


def test_a_stream_that_its_reader_forgets_frees_its_slot(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "stalls") as broker:
            async for _ in broker.stream("hello"):
                break
            gc.collect()
            await asyncio.sleep(0.05)
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is CallStatus.INTERRUPTED

    run(program)


def test_a_blocking_stream_that_its_reader_forgets_frees_its_slot(wall: Wall) -> None:
    with llmbroker.Broker(pool(wall, "stalls"), secrets={"KEY": "k"}) as broker:
        for _ in broker.stream("hello"):
            break
        deadline = time.monotonic() + 10
        while slots_taken(broker._broker) and time.monotonic() < deadline:
            gc.collect()  # the loop's thread may have held the last reference until now
            time.sleep(0.02)

        assert slots_taken(broker._broker) == 0
        assert [row.status for row in broker.calls()] == [CallStatus.INTERRUPTED]


def test_a_stream_closed_while_it_opens_is_closed(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "slow") as broker:
            stream = broker.stream("hello")
            reading = asyncio.ensure_future(stream.next_delta())
            await asyncio.sleep(0.1)
            await stream.aclose()
            await asyncio.wait([reading], timeout=2)
            rows = await settled(broker)
            assert slots_taken(broker) == 0
            assert [row.status for row in rows] == [CallStatus.INTERRUPTED]

    run(program)


def test_closing_a_stream_that_is_being_read_is_not_the_model_s_fault(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "stalls") as broker:
            stream = broker.stream("hello")

            async def read() -> None:
                async for _ in stream:
                    pass

            reading = asyncio.ensure_future(read())
            await asyncio.sleep(0.2)
            await stream.aclose()
            await asyncio.wait([reading], timeout=2)
            assert reading.done()
            assert slots_taken(broker) == 0
            assert [row.status for row in await settled(broker)] == [CallStatus.INTERRUPTED]
            assert (await broker.snapshot())["stalls"].usable

    run(program)


@pytest.mark.parametrize("name", ["sound", "cut"])
def test_a_stream_cancelled_at_its_very_end_still_has_its_outcome(wall: Wall, name: str) -> None:
    async def program() -> None:
        store = GatedStore()
        async with make(wall, name, store=store) as broker:
            stream = broker.stream("hello")

            async def read() -> None:
                async for _ in stream:
                    pass

            reading = asyncio.ensure_future(read())
            await store.gate.reached.wait()
            reading.cancel()
            store.gate.opened.set()
            await asyncio.wait([reading])
            await stream.aclose()
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status not in (None, CallStatus.STARTED)

    run(program)


def test_a_stream_cancelled_while_its_break_is_judged_gives_its_slot_back(wall: Wall) -> None:
    async def program() -> None:
        health = GatedHealth()
        async with make(wall, "cut", health=health) as broker:
            stream = broker.stream("hello")

            async def read() -> None:
                async for _ in stream:
                    pass

            reading = asyncio.ensure_future(read())
            await health.gate.reached.wait()
            reading.cancel()
            health.gate.opened.set()
            await asyncio.wait([reading])
            await stream.aclose()
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is not CallStatus.STARTED

    run(program)


def test_a_broker_closed_under_its_callers_lets_none_of_them_hang(wall: Wall) -> None:
    broker = llmbroker.Broker(pool(wall, "slow"), secrets={"KEY": "k"})

    def call() -> None:
        with suppress(BaseException):  # any end will do
            broker.ask("hello")

    callers = [threading.Thread(target=call, daemon=True) for _ in range(5)]
    for caller in callers:
        caller.start()
    while not wall.visits:
        time.sleep(0.01)
    broker.close()
    for caller in callers:
        caller.join(5)

    assert not any(caller.is_alive() for caller in callers)
    broker.close()


class SlowStore(llmbroker.InMemoryStore):
    """Takes its time over an outcome, as a database does."""

    async def record(self, call: Call) -> None:
        await asyncio.sleep(0.02)
        await super().record(call)


def test_a_broker_closed_under_its_callers_leaves_no_attempt_open(wall: Wall) -> None:
    store = SlowStore()
    broker = llmbroker.Broker(pool(wall, "slow"), secrets={"KEY": "k"}, store=store)

    def call() -> None:
        with suppress(BaseException):  # any end will do
            broker.ask("hello")

    callers = [threading.Thread(target=call, daemon=True) for _ in range(5)]
    for caller in callers:
        caller.start()
    while not wall.visits:
        time.sleep(0.01)
    broker.close()

    rows = asyncio.run(store.calls(limit=100))
    assert rows
    assert all(row.status is not CallStatus.STARTED for row in rows)
    assert all(row.cooldown_until is None for row in rows)  # it was us who hung up
    for caller in callers:
        caller.join(5)
    broker.close()
