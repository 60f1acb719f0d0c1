"""Who may try a model after its cooldown, and what a try that proves nothing leaves behind."""

from __future__ import annotations

import asyncio

import pytest

import llmbroker
from llmbroker.models import ApiKey
from llmbroker.routing.health import MemoryHealth
from llmbroker.routing.verdict import Cools
from tests.llmbroker.conftest import Clock
from tests.llmbroker.faults.helpers import (
    HELLO,
    identity_of,
    make,
    pool,
    run,
    settled,
    slots_taken,
)
from tests.support.wall import ANSWER, Wall


def test_a_slow_model_that_is_well_again_is_trusted_again(wall: Wall, clock: Clock) -> None:
    """It loses every race beside a quicker one, and must come back all the same."""

    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "slow", "sound", health=health, clock=clock) as broker:
            await health.cool(await identity_of(broker), seconds=5, asked=None)
            clock.now += 6
            await broker.chat(HELLO)
            await asyncio.sleep(0.5)
            clock.now += 1
            assert (await broker.chat(HELLO)).llm_name == "slow"

    run(program)


def test_a_probe_that_nobody_waits_for_ends_by_itself(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        limits = llmbroker.Timeouts(first_token=0.3)
        async with make(
            wall, "silent", "sound", health=health, clock=clock, timeouts=limits
        ) as broker:
            await health.cool(await identity_of(broker), seconds=5, asked=None)
            clock.now += 6
            assert (await broker.chat(HELLO)).llm_name == "sound"
            assert slots_taken(broker) == 1  # it goes on, to find out
            assert await asyncio.to_thread(wall.visits_to("silent")[0].hung_up.wait, 2)
            await asyncio.sleep(0.05)
            assert slots_taken(broker) == 0

    run(program)


def test_a_probe_has_no_second_one_beside_it_with_another_key(wall: Wall, clock: Clock) -> None:
    class TwoKeys(llmbroker.DictSecrets):
        async def keys(self, ref: str, *, scope: str | None) -> list[ApiKey]:
            return [ApiKey("one", "sk-1"), ApiKey("two", "sk-2")]

    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        registry = pool(wall, "slow", "sound", parallel=None)
        secrets = TwoKeys({})
        async with make(
            wall, registry=registry, secrets=secrets, health=health, clock=clock
        ) as broker:
            await health.cool(await identity_of(broker, Cools.KEY_ON_MODEL), seconds=5, asked=None)
            clock.now += 6
            await broker.chat(HELLO, fastest_of=2)
            assert len(wall.visits_to("slow")) == 1

    run(program)


@pytest.mark.parametrize("name", ["filtered", "small-window", "refuses-key"])
def test_a_probe_that_proves_nothing_leaves_the_next_one_open(
    wall: Wall, clock: Clock, name: str
) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, name, health=health, clock=clock) as broker:
            identity = await identity_of(broker)
            await health.cool(identity, seconds=5, asked=None)
            clock.now += 6
            with pytest.raises(llmbroker.LLMRequestError):
                await broker.chat(HELLO, wait=0)
            assert await health.claim_probe(identity, lease=60)

    run(program)


def test_a_probe_whose_caller_went_away_leaves_the_next_one_open(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "silent", health=health, clock=clock) as broker:
            identity = await identity_of(broker)
            await health.cool(identity, seconds=5, asked=None)
            clock.now += 6
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(broker.chat(HELLO), 0.1)
            await settled(broker)
            assert await health.claim_probe(identity, lease=60)

    run(program)


def test_a_claim_that_is_half_granted_is_given_back(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "sound", health=health, clock=clock) as broker:
            (candidate,) = await broker._parts.pool.usable(None)
            ids = sorted(candidate.ids.values())
            for identity in (ids[0], ids[-1]):
                await health.cool(identity, seconds=5, asked=None)
            clock.now += 6
            survey = await broker._parts.router._survey(_trip(broker))
            await health.claim_probe(ids[-1], lease=60)  # another caller's
            assert await broker._parts.router._lanes(_trip(broker), survey) == []
            assert await health.claim_probe(ids[0], lease=60)

    run(program)


def _trip(broker: llmbroker.AsyncBroker) -> object:
    from llmbroker.routing.call import Ask
    from llmbroker.routing.router import Trip

    return Trip(Ask(HELLO), broker._parts.engine.clock)


def test_who_may_not_probe_makes_one_request_and_not_two(wall: Wall, clock: Clock) -> None:
    class Taken(MemoryHealth):
        async def claim_probe(self, identity: str, *, lease: float) -> bool:
            return False

    async def program() -> None:
        health = Taken(clock, jitter=lambda: 0.0)
        async with make(
            wall, "silent", "sound", "sound/spare", health=health, clock=clock
        ) as broker:
            await health.cool(await identity_of(broker), seconds=5, asked=None)
            clock.now += 6
            await broker.chat(HELLO)
            await broker._parts.engine.drain()
            assert len(wall.visits) == 1

    run(program)


def test_an_answer_that_the_caller_s_own_limit_left_empty_cools_nothing(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "cut-short", "sound") as broker:
            reply = await broker.chat(HELLO, params={"max_tokens": 1})
            assert reply.llm_name == "sound"
            assert (await broker.snapshot())["cut-short"].usable

    run(program)


def test_a_limit_that_says_when_it_passes_is_taken_at_its_word(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "limited-once", health=health, clock=clock) as broker:
            with pytest.raises(llmbroker.NoLLMAvailableError):
                await broker.chat(HELLO, wait=0)
            clock.now += 2.1
            assert (await broker.chat(HELLO, wait=0)).text == ANSWER

    run(program)


def test_a_caller_s_spent_wait_is_never_held_against_a_model(wall: Wall) -> None:
    async def program() -> None:
        names = [f"silent/{number}" for number in range(3)]
        async with make(wall, *names, hedge_after=None) as broker:
            for _ in range(15):
                with pytest.raises(llmbroker.NoLLMAvailableError):
                    await broker.chat(HELLO, wait=0.05)
            snapshot = await broker.snapshot()
            assert all(snapshot[name].usable for name in names)

    run(program)
