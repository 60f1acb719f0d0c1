"""What every Health must do, in memory and over Redis: deadlines only move later, streaks
double, one caller probes."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from broker_project.shared_health import SharedHealth
from llmbroker.routing.health import FORGET_AFTER, MAX_ASKED, MAX_COOLDOWN, Health, MemoryHealth
from tests.llmbroker.conftest import Clock

Open = Callable[..., AbstractAsyncContextManager[Health]]


@asynccontextmanager
async def in_memory(
    clock: Clock, jitter: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[Health]:
    yield MemoryHealth(clock, jitter)


@asynccontextmanager
async def over_redis(
    clock: Clock, jitter: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[Health]:
    prefix = f"test:{uuid.uuid4()}:"
    health = SharedHealth(os.environ["REDIS_URL"], prefix=prefix, clock=clock, jitter=jitter)
    yield health
    assert not health._is_alone
    await health.aclose()


@pytest.fixture(params=[in_memory, over_redis])
def opened(request: pytest.FixtureRequest) -> Open:
    return request.param


@pytest.fixture
def clock() -> Clock:
    return Clock()


def run(coroutine: object) -> object:
    import asyncio

    return asyncio.run(coroutine)  # type: ignore[arg-type]


def test_failures_in_a_row_double_the_cooldown_up_to_the_cap(opened: Open, clock: Clock) -> None:
    async def program() -> list[float]:
        async with opened(clock) as health:
            lengths = []
            for _ in range(9):
                until = await health.cool("x", seconds=5, asked=None)
                lengths.append(round(until - clock.now, 3))
                clock.now = until + 0.001
            return lengths

    cap = MAX_COOLDOWN
    assert run(program()) == [5, 10, 20, 40, 80, 160, cap, cap, cap]


def test_calls_that_fail_together_are_one_failure(opened: Open, clock: Clock) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            for _ in range(30):
                until = await health.cool("x", seconds=5, asked=60)
            assert until == pytest.approx(clock.now + 60, abs=1e-3)
            clock.now += 61
            again = await health.cool("x", seconds=5, asked=None)
            assert again == pytest.approx(clock.now + 10, abs=1e-3)

    run(program())


def test_a_deadline_only_ever_moves_later(opened: Open, clock: Clock) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            late = await health.cool("x", seconds=5, asked=100)
            same = await health.cool("x", seconds=5, asked=1)
            later = await health.cool("x", seconds=5, asked=200)
            assert same == pytest.approx(late, abs=1e-3)
            assert later == pytest.approx(clock.now + 200, abs=1e-3)

    run(program())


def test_what_a_provider_asks_for_is_capped_at_a_day(opened: Open, clock: Clock) -> None:
    async def program() -> float:
        async with opened(clock) as health:
            return await health.cool("x", seconds=5, asked=1e9)

    assert run(program()) == pytest.approx(clock.now + MAX_ASKED, abs=1e-3)


def test_callers_return_at_different_times(opened: Open, clock: Clock) -> None:
    spread = iter([0.0, 0.0, 1.0, 1.0])

    async def program() -> None:
        async with opened(clock, lambda: next(spread)) as health:
            first = await health.cool("a", seconds=60, asked=None)
            next(spread, None) if isinstance(health, MemoryHealth) else None
            second = await health.cool("b", seconds=60, asked=None)
            assert second - first == pytest.approx(15, abs=1e-3)

    run(program())


def test_cooldowns_are_told_of_what_is_asked_for_only(opened: Open, clock: Clock) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            assert await health.cooldowns(["x", "y"]) == {}
            until = await health.cool("x", seconds=5, asked=None)
            await health.cool("z", seconds=5, asked=None)
            known = await health.cooldowns(["y", "x"])
            assert set(known) == {"x"}
            assert known["x"].until == pytest.approx(until, abs=1e-3)
            assert known["x"].streak == 1

    run(program())


def test_a_success_ends_the_streak(opened: Open, clock: Clock) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            await health.cool("x", seconds=5, asked=None)
            await health.clear(["x", "never seen"])
            await health.clear([])
            assert await health.cooldowns(["x"]) == {}
            until = await health.cool("x", seconds=5, asked=None)
            assert until == pytest.approx(clock.now + 5, abs=1e-3)

    run(program())


def test_one_caller_probes_and_a_dead_prober_s_claim_lapses(opened: Open, clock: Clock) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            assert await health.claim_probe("healthy", lease=60)
            await health.cool("x", seconds=5, asked=None)
            assert not await health.claim_probe("x", lease=60)
            clock.now += 6
            assert await health.claim_probe("x", lease=60)
            assert not await health.claim_probe("x", lease=60)
            probing = (await health.cooldowns(["x"]))["x"].probe_until
            assert probing == pytest.approx(clock.now + 60, abs=1e-3)
            clock.now += 61
            assert await health.claim_probe("x", lease=60)

    run(program())


def test_one_caller_at_a_time_tries_what_nobody_knows_until_it_has_answered(
    opened: Open, clock: Clock
) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            assert await health.claim_probe("new", lease=30)
            assert not await health.claim_probe("new", lease=30)
            assert await health.cooldowns(["new"]) == {}
            clock.now += 31
            assert await health.claim_probe("new", lease=30)
            await health.clear(["new"])
            assert await health.claim_probe("new", lease=30)

    run(program())


def test_a_claim_given_back_is_open_to_others_and_the_streak_stays(
    opened: Open, clock: Clock
) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            assert await health.claim_probe("new", lease=30)
            await health.cool("x", seconds=5, asked=None)
            clock.now += 6
            assert await health.claim_probe("x", lease=30)
            await health.release(["x", "new", "never seen"])
            await health.release([])
            assert await health.claim_probe("x", lease=30)
            assert await health.claim_probe("new", lease=30)
            until = await health.cool("x", seconds=5, asked=None)
            assert until == pytest.approx(clock.now + 10, abs=1e-3)

    run(program())


def test_a_new_process_need_not_try_what_another_has_had_an_answer_of(clock: Clock) -> None:
    prefix = f"test:{uuid.uuid4()}:"

    async def program() -> None:
        one, two = (
            SharedHealth(os.environ["REDIS_URL"], prefix=prefix, clock=clock) for _ in range(2)
        )
        assert await one.claim_probe("x", lease=30)
        assert not await two.claim_probe("x", lease=30)
        await one.clear(["x"])
        assert [await two.claim_probe("x", lease=30) for _ in range(2)] == [True, True]
        await one.cool("x", seconds=5, asked=None)
        assert not await two.claim_probe("x", lease=30)
        await one.aclose()
        await two.aclose()

    run(program())


def test_a_failed_probe_cools_for_longer_and_the_next_probe_is_open_to_all(
    opened: Open, clock: Clock
) -> None:
    async def program() -> None:
        async with opened(clock) as health:
            await health.cool("x", seconds=5, asked=None)
            clock.now += 6
            assert await health.claim_probe("x", lease=600)
            until = await health.cool("x", seconds=5, asked=None)
            assert until == pytest.approx(clock.now + 10, abs=1e-3)
            clock.now += 11
            assert await health.claim_probe("x", lease=60)

    run(program())


def test_two_processes_know_the_same(clock: Clock) -> None:
    prefix = f"test:{uuid.uuid4()}:"

    async def program() -> None:
        one, two = (
            SharedHealth(os.environ["REDIS_URL"], prefix=prefix, clock=clock) for _ in range(2)
        )
        await one.cool("x", seconds=5, asked=None)
        assert set(await two.cooldowns(["x"])) == {"x"}
        clock.now += 10
        claims = [await each.claim_probe("x", lease=60) for each in (one, two, one)]
        assert claims == [True, False, False]
        await two.clear(["x"])
        assert await one.cooldowns(["x"]) == {}
        await one.aclose()
        await two.aclose()

    run(program())


def test_without_redis_a_process_goes_on_alone_and_says_so_once(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def program() -> None:
        health = SharedHealth("redis://127.0.0.1:9/0", clock=clock, jitter=lambda: 0.0)
        until = await health.cool("x", seconds=5, asked=None)
        assert until == clock.now + 5
        assert set(await health.cooldowns(["x"])) == {"x"}
        assert not await health.claim_probe("x", lease=1)
        await health.aclose()

    with caplog.at_level(logging.WARNING):
        run(program())
    assert caplog.text.count("cooldowns are not shared") == 1


def test_what_is_long_over_is_forgotten_also_where_nobody_asks_for_it(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)

    async def program() -> None:
        await health.cool("old", seconds=5, asked=None)
        assert await health.claim_probe("unknown", lease=30)
        clock.now += 5 + FORGET_AFTER + 1
        assert await health.cooldowns(["old"]) == {}
        await health.cool("old", seconds=5, asked=None)
        assert (await health.cooldowns(["old"]))["old"].streak == 1
        clock.now += 5 + FORGET_AFTER + 1
        await health.cooldowns(["other"])
        assert (health._known, health._claimed) == ({}, {})

    run(program())
