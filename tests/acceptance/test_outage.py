"""A primary that is down for a minute: it is left alone, and nobody waits for it.

It sees at most four requests however many callers and processes there are: one that finds out,
and one probe each time its cooldown ends. Callers whose requests were under way when it died
come on top: those had left before anybody could know.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import llmbroker
from broker_project.shared_health import SharedHealth
from llmbroker.routing.health import MemoryHealth
from tests.llmbroker.conftest import Clock
from tests.support.outage_callers import SPEED, HurriedClock, call_until, models
from tests.support.wall import ANSWER, Wall

MINUTE = 60
AT_MOST = 4
CALLERS = 20
PROCESSES = 4
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def wall() -> Iterator[Wall]:
    with Wall() as wall:
        wall.down = True
        yield wall


def make(wall: Wall, clock: object, primary: str = "down", **more: object) -> llmbroker.AsyncBroker:
    options = {"health": MemoryHealth(clock), "clock": clock, "secrets": {"KEY": "k"}, **more}  # type: ignore[arg-type]
    return llmbroker.AsyncBroker(models(wall.base_url, primary), **options)  # type: ignore[arg-type]


async def call_together(broker: llmbroker.AsyncBroker, callers: int) -> list[str]:
    replies = await asyncio.gather(*(broker.ask("hello") for _ in range(callers)))
    assert {reply.text for reply in replies} == {ANSWER}
    return [reply.llm_name for reply in replies]


@pytest.mark.parametrize("callers", [1, CALLERS])
def test_the_dead_primary_sees_four_requests_and_every_call_is_answered(
    wall: Wall, callers: int
) -> None:
    async def program() -> None:
        clock = Clock()
        async with make(wall, clock) as broker:
            for _ in range(MINUTE):
                assert set(await call_together(broker, callers)) == {"sound"}
                clock.now += 1

    asyncio.run(program())

    assert 1 <= len(wall.visits_to("down")) <= AT_MOST
    assert len(wall.visits_to("sound")) <= MINUTE * callers


def test_twenty_threads_share_what_they_know(wall: Wall) -> None:
    clock = HurriedClock(time.time())
    end = clock() + MINUTE
    answers: Counter[str] = Counter()

    with llmbroker.Broker(
        models(wall.base_url), secrets={"KEY": "k"}, health=MemoryHealth(clock), clock=clock
    ) as broker:

        def call() -> None:
            while clock() < end:
                answers[broker.ask("hello").llm_name] += 1
                time.sleep(0.02)

        threads = [threading.Thread(target=call) for _ in range(CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert set(answers) == {"sound"}
    assert 1 <= len(wall.visits_to("down")) <= AT_MOST


def test_several_processes_share_what_they_know_over_redis(wall: Wall) -> None:
    prefix = f"test:{uuid.uuid4()}:"
    with ExitStack() as running:
        processes = [running.enter_context(_process(wall, prefix)) for _ in range(PROCESSES)]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        now = f"{time.time()}\n"
        for process in processes:
            process.stdin.write(now)
            process.stdin.flush()
        outputs = [process.communicate(timeout=60)[0] for process in processes]

    answers = sum((Counter(json.loads(output)) for output in outputs), Counter())
    assert set(answers) == {"sound"}
    assert 1 <= len(wall.visits_to("down")) <= AT_MOST


def _process(wall: Wall, prefix: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.outage_callers", wall.base_url]
    command += [os.environ["REDIS_URL"], prefix, str(MINUTE)]
    return subprocess.Popen(
        [*command, str(CALLERS // PROCESSES)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_requests_that_were_under_way_when_it_died_come_on_top_once(wall: Wall) -> None:
    async def program() -> None:
        clock = Clock()
        async with make(wall, clock) as broker:
            wall.down = False
            await broker.ask("hello")  # so that it is known to be well
            assert set(await call_together(broker, CALLERS)) == {"down"}
            wall.down, before = True, len(wall.visits_to("down"))
            for _ in range(MINUTE):
                assert set(await call_together(broker, CALLERS)) == {"sound"}
                clock.now += 1
            assert len(wall.visits_to("down")) - before <= CALLERS + AT_MOST - 1

    asyncio.run(program())


@pytest.mark.parametrize("shared", [False, True], ids=["in memory", "over redis"])
def test_it_is_in_use_again_within_half_a_minute_of_its_return(wall: Wall, shared: bool) -> None:
    async def program() -> None:
        clock = Clock()
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        if shared:
            health = SharedHealth(  # type: ignore[assignment]
                os.environ["REDIS_URL"],
                prefix=f"test:{uuid.uuid4()}:",
                clock=clock,
                jitter=lambda: 0.0,
            )
        async with make(wall, clock, health=health) as broker:
            for _ in range(MINUTE):
                await call_together(broker, 2)
                clock.now += 1
            wall.down = False
            for _ in range(30):
                await call_together(broker, 2)
                clock.now += 1
                await asyncio.sleep(0.005)
            assert await call_together(broker, CALLERS) == ["down"] * CALLERS

    asyncio.run(program())


@pytest.mark.parametrize("was_well", [False, True], ids=["from the start", "after an answer"])
def test_a_primary_that_falls_silent_is_left_alone_as_well(wall: Wall, was_well: bool) -> None:
    """It is overtaken instead of failing; the calls that are under way until then come on top."""

    async def program() -> None:
        clock = HurriedClock(time.time())
        async with make(wall, clock, "mute", hedge_after=10 / SPEED) as broker:
            wall.down = not was_well
            if was_well:
                await broker.ask("hello")
                wall.down = True
            before = len(wall.visits_to("mute"))
            answers = await call_until(broker, clock() + MINUTE, CALLERS)
            assert set(answers) == {"sound"}
            asked = len(wall.visits_to("mute")) - before
            assert asked <= (CALLERS + AT_MOST - 1 if was_well else AT_MOST)

    asyncio.run(program())
