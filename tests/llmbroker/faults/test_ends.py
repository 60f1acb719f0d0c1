"""Every attempt ends once: its slot is free again and its row is closed, whatever fails."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

import llmbroker
from llmbroker.models import ApiKey, Call, CallStatus
from tests.llmbroker.faults.helpers import (
    HELLO,
    BrokenError,
    BrokenHealth,
    GatedHealth,
    GatedStore,
    make,
    model,
    run,
    settled,
    slots_taken,
)
from tests.support.wall import ANSWER, Wall


@pytest.mark.parametrize("name", ["sound", "unavailable", "filtered"])
def test_a_call_cancelled_while_its_outcome_is_written_still_has_its_outcome(
    wall: Wall, name: str
) -> None:
    async def program() -> None:
        store = GatedStore()
        async with make(wall, name, store=store) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO, wait=0))
            await store.gate.reached.wait()
            call.cancel()
            store.gate.opened.set()
            with pytest.raises(asyncio.CancelledError):
                await call
            (row,) = await settled(broker)
            assert row.status not in (None, CallStatus.STARTED)
            assert slots_taken(broker) == 0

    run(program)


def test_a_call_cancelled_while_its_failure_is_judged_gives_its_slot_back(wall: Wall) -> None:
    async def program() -> None:
        health = GatedHealth()
        async with make(wall, "unavailable", health=health) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO, wait=0))
            await health.gate.reached.wait()
            call.cancel()
            health.gate.opened.set()
            with pytest.raises(asyncio.CancelledError):
                await call
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is not CallStatus.STARTED

    run(program)


def test_a_failure_that_cannot_be_cooled_is_a_failure_all_the_same(wall: Wall) -> None:
    async def program() -> None:
        health = BrokenHealth("cool")
        async with make(wall, "unavailable", "sound", health=health) as broker:
            with pytest.raises(BrokenError):
                await broker.chat(HELLO)
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is CallStatus.UNAVAILABLE

    run(program)


def test_an_answer_is_journaled_though_health_cannot_be_told_of_it(wall: Wall) -> None:
    async def program() -> None:
        health = BrokenHealth("clear")
        async with make(wall, "fails-once", health=health) as broker:
            with pytest.raises(llmbroker.NoLLMAvailableError):
                await broker.chat(HELLO, wait=0)
            health._clock = broker._parts.engine.clock = lambda: time.time() + 60
            with suppress(BrokenError):
                await broker.chat(HELLO, wait=0)
            assert [row.status for row in await settled(broker)][1:] == [CallStatus.OK]
            assert slots_taken(broker) == 0

    run(program)


class Watched(llmbroker.DictSecrets):
    """Is told of refused keys, and breaks over it."""

    async def key_refused(self, key: ApiKey, *, detail: str) -> None:
        raise BrokenError("the owner of the keys is away")


def test_a_refused_key_that_cannot_be_reported_gives_its_slot_back(wall: Wall) -> None:
    async def program() -> None:
        secrets = Watched({"KEY": "sk-wall"})
        async with make(wall, "refuses-key", secrets=secrets) as broker:
            with pytest.raises((BrokenError, llmbroker.LLMRequestError)):
                await broker.chat(HELLO, wait=0)
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is CallStatus.ERROR

    run(program)


class NoIntents(llmbroker.InMemoryStore):
    async def begin(self, call: Call) -> None:
        raise BrokenError("the journal is away")


def test_without_an_intent_nothing_is_sent(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "sound", store=NoIntents()) as broker:
            with pytest.raises(BrokenError):
                await broker.chat(HELLO)
            assert wall.visits == []
            assert slots_taken(broker) == 0

    run(program)


@pytest.mark.parametrize(
    "messages",
    [
        [{"content": "no role"}],
        [{"role": "assistant", "tool_calls": 7}],
        [{"role": "user", "content": {1: 2}}],
        [{"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}],
        [{"role": "tool", "content": "x"}],
        [{"role": "tool", "tool_call_id": ["x"], "content": object()}],
    ],
)
def test_a_message_at_fault_is_nobody_else_s_fault(wall: Wall, messages: list[object]) -> None:
    async def program() -> None:
        async with make(wall, "sound") as broker:
            with suppress(ValueError, TypeError, llmbroker.RequestRefusedError):
                await broker.chat(messages, wait=0)  # type: ignore[arg-type]
            assert slots_taken(broker) == 0
            assert all(row.status is not CallStatus.STARTED for row in await settled(broker))
            assert (await broker.chat(HELLO, wait=0)).text == ANSWER

    run(program)


def test_tools_at_fault_leave_no_attempt_open(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "sound") as broker:
            for tools in ([{"type": "function"}], [{}], [{"function": {"parameters": 3}}], ["x"]):
                with suppress(ValueError, TypeError, llmbroker.RequestRefusedError):
                    await broker.chat(HELLO, tools=tools, wait=0)  # type: ignore[arg-type]
            assert slots_taken(broker) == 0
            assert all(row.status is not CallStatus.STARTED for row in await settled(broker))
            assert (await broker.chat(HELLO, wait=0)).text == ANSWER

    run(program)


def test_a_direct_call_with_a_bad_argument_says_which(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, direct=[model(wall, "sound")]) as broker:
            client = broker.direct(name="sound")
            with pytest.raises(ValueError, match="model"):
                await client.chat(HELLO, params={"model": "another"})
            with pytest.raises(ValueError, match="role"):
                await client.chat([{"content": "hi"}])

    run(program)
