"""Cooldowns: deadlines only move later, streaks double, one caller probes."""

from __future__ import annotations

import asyncio

from llmbroker.routing.health import MAX_ASKED, MAX_COOLDOWN, MemoryHealth
from tests.llmbroker.conftest import Clock


def test_failures_in_a_row_double_the_cooldown_up_to_the_cap(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)
    lengths = []
    for _ in range(9):
        until = asyncio.run(health.cool("x", seconds=5, asked=None))
        lengths.append(until - clock.now)
        clock.now = until
    assert lengths == [5, 10, 20, 40, 80, 160, MAX_COOLDOWN, MAX_COOLDOWN, MAX_COOLDOWN]


def test_calls_that_fail_together_are_one_failure(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)
    for _ in range(30):
        until = asyncio.run(health.cool("x", seconds=5, asked=60))
    assert until == clock.now + 60
    clock.now += 61
    assert asyncio.run(health.cool("x", seconds=5, asked=None)) == clock.now + 10


def test_a_deadline_only_ever_moves_later(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)
    late = asyncio.run(health.cool("x", seconds=5, asked=100))
    assert asyncio.run(health.cool("x", seconds=5, asked=1)) == late
    assert asyncio.run(health.cool("x", seconds=5, asked=200)) == clock.now + 200


def test_what_a_provider_asks_for_is_capped_at_a_day(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)
    assert asyncio.run(health.cool("x", seconds=5, asked=1e9)) == clock.now + MAX_ASKED


def test_callers_return_at_different_times(clock: Clock) -> None:
    spread = iter([0.0, 1.0])
    health = MemoryHealth(clock, jitter=lambda: next(spread))
    first = asyncio.run(health.cool("a", seconds=60, asked=None))
    second = asyncio.run(health.cool("b", seconds=60, asked=None))
    assert second - first == 15


def test_a_success_ends_the_streak(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)
    asyncio.run(health.cool("x", seconds=5, asked=None))
    asyncio.run(health.clear(["x"]))
    assert asyncio.run(health.cooldowns(["x"])) == {}
    assert asyncio.run(health.cool("x", seconds=5, asked=None)) == clock.now + 5


def test_one_caller_probes_and_a_dead_prober_s_claim_lapses(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)
    asyncio.run(health.cool("x", seconds=5, asked=None))
    assert not asyncio.run(health.claim_probe("x", lease=60))
    clock.now += 6
    assert asyncio.run(health.claim_probe("x", lease=60))
    assert not asyncio.run(health.claim_probe("x", lease=60))
    clock.now += 61
    assert asyncio.run(health.claim_probe("x", lease=60))


def test_an_old_streak_is_forgotten(clock: Clock) -> None:
    health = MemoryHealth(clock, jitter=lambda: 0.0)
    asyncio.run(health.cool("x", seconds=5, asked=None))
    clock.now += 3600
    assert asyncio.run(health.cooldowns(["x"])) == {}
