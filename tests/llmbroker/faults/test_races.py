"""Attempts side by side: one answer, no more requests than a call may cost, no stale key."""

from __future__ import annotations

import asyncio

import pytest

import llmbroker
from llmbroker.models import CallStatus
from tests.llmbroker.faults.helpers import (
    HELLO,
    make,
    model,
    run,
    settled,
    slots_taken,
)
from tests.support.wall import Wall


def test_a_policy_refusal_is_returned_though_another_model_is_under_way(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "filtered", "slow") as broker:
            with pytest.raises(llmbroker.ContentPolicyError):
                await broker.chat(HELLO, fastest_of=2)
            rows = await settled(broker)
            assert {(row.llm_name, row.status) for row in rows} == {
                ("filtered", CallStatus.ERROR),
                ("slow", CallStatus.SUPERSEDED),
            }
            assert slots_taken(broker) == 0

    run(program)


def test_of_two_that_answer_at_once_one_is_the_answer(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "sound", "sound/spare") as broker:
            for _ in range(30):
                await broker.chat(HELLO, fastest_of=2, trace_id="t")
            rows = await settled(broker)
            assert sum(row.status is CallStatus.OK for row in rows) == 30
            assert slots_taken(broker) == 0

    run(program)


def test_a_race_of_many_costs_no_more_than_a_call_may(wall: Wall) -> None:
    async def program() -> None:
        names = [f"sound/{number}" for number in range(20)]
        async with make(wall, *names) as broker:
            await broker.chat(HELLO, fastest_of=20)
            assert len(wall.visits) <= 8

    run(program)


def test_a_key_revoked_meanwhile_is_not_used_by_the_second_model(wall: Wall) -> None:
    async def program() -> None:
        secrets = llmbroker.DictSecrets({"KEY": "sk-old", "OTHER": "sk-revoked"})
        registry = llmbroker.InMemoryRegistry(
            [
                model(wall, "slow", weight=0.9),
                llmbroker.LLMConfig("sound", wall.base_url, "sound", "OTHER"),
            ]
        )
        async with make(wall, registry=registry, secrets=secrets, hedge_after=0.1) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO))
            await asyncio.sleep(0.05)
            del secrets._values["OTHER"]
            assert (await call).llm_name == "slow"
            assert wall.visits_to("sound") == []

    run(program)


def test_a_second_model_is_found_though_the_next_one_has_no_slot_left(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "silent", "stalls", "sound", hedge_after=0.2) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO))
            await asyncio.sleep(0.05)
            broker._parts.engine.slots.take(model(wall, "stalls"))  # another caller's
            assert (await asyncio.wait_for(call, 2)).llm_name == "sound"

    run(program)
