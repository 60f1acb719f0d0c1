"""Functions that have always been quick share a thread, and hold up nobody when they are not."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from llmbroker.tools import express, tempo
from llmbroker.tools.workers import in_thread

Test = Callable[..., Coroutine[Any, Any, None]]


def on_a_loop(test: Test) -> Callable[..., None]:
    """A coroutine function as a test."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


SHARED, OWN = "llmbroker-tools", "llmbroker-tool"


@pytest.fixture
def anything_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that runs this may be slow."""
    monkeypatch.setattr(tempo, "QUICK", 60.0)


def where() -> str:
    return threading.current_thread().name


async def known(function: Callable[..., Any]) -> None:
    """Let it earn its name."""
    for _ in range(tempo.TRUSTED_AFTER):
        await in_thread(function)


@pytest.mark.usefixtures("anything_is_quick")
@on_a_loop
async def test_after_some_quick_calls_a_function_shares_a_thread() -> None:
    def function() -> str:
        return where()

    before = [await in_thread(function) for _ in range(tempo.TRUSTED_AFTER)]
    after = await asyncio.gather(*(in_thread(function) for _ in range(50)))
    assert set(before) == {OWN}
    assert set(after) == {SHARED}


@on_a_loop
async def test_a_function_that_waits_has_a_thread_of_its_own_however_often_it_is_called() -> None:
    def function() -> str:
        time.sleep(0.002)
        return where()

    assert {await in_thread(function) for _ in range(2 * tempo.TRUSTED_AFTER)} == {OWN}


@pytest.mark.usefixtures("anything_is_quick")
@on_a_loop
async def test_one_that_is_stuck_for_once_holds_up_no_other() -> None:
    released = threading.Event()

    def function(*, stuck: bool = False) -> str:
        if stuck:
            released.wait(20)
        return where()

    def call(*, stuck: bool) -> asyncio.Future[str]:
        return in_thread(lambda: function(stuck=stuck), function=function)

    await known(function)
    hanging = call(stuck=True)
    async with asyncio.timeout(5):
        behind = await asyncio.gather(*(call(stuck=False) for _ in range(20)))
        later = await call(stuck=False)
    assert not hanging.done()
    assert set(behind) == {OWN}, "they were given to others"
    assert later == SHARED, "a new thread is shared from then on"
    released.set()
    assert await hanging == SHARED


@on_a_loop
async def test_a_function_that_was_slow_once_must_earn_its_name_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def function() -> str:
        return where()

    monkeypatch.setattr(tempo, "QUICK", 60.0)
    await known(function)
    monkeypatch.setattr(tempo, "QUICK", 0.0)
    assert await in_thread(function) == SHARED
    assert await in_thread(function) == OWN


@pytest.mark.usefixtures("anything_is_quick")
@on_a_loop
async def test_what_a_quick_function_raises_reaches_its_caller_alone() -> None:
    def function(error: BaseException | None = None) -> str:
        if error is not None:
            raise error
        return "fine"

    def call(error: BaseException | None = None) -> asyncio.Future[str]:
        return in_thread(lambda: function(error), function=function)

    await known(function)
    errors = [KeyError("x"), SystemExit(1), StopIteration("y"), None]
    results = await asyncio.gather(*map(call, errors), return_exceptions=True)
    assert [type(each) for each in results] == [KeyError, RuntimeError, RuntimeError, str]


@pytest.mark.usefixtures("anything_is_quick")
@on_a_loop
async def test_a_quick_call_that_nobody_waits_for_any_more_is_not_made() -> None:
    made: list[int] = []
    gate = threading.Event()

    def function(number: int = 0) -> None:
        if number == 1:
            gate.wait(5)
        made.append(number)

    await known(function)
    first, second = (in_thread(lambda n=n: function(n), function=function) for n in (1, 2))
    second.cancel()
    gate.set()
    await first
    assert await in_thread(lambda: function(3), function=function) is None
    assert made[tempo.TRUSTED_AFTER :] == [1, 3]


@pytest.mark.usefixtures("anything_is_quick")
def test_event_loops_of_several_threads_share_it() -> None:
    def function() -> str:
        return where()

    async def many() -> set[str]:
        await known(function)
        return set(await asyncio.gather(*(in_thread(function) for _ in range(200))))

    found: list[set[str]] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(many()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 4
    assert set.union(*found) <= {SHARED, OWN}


@pytest.mark.usefixtures("anything_is_quick")
@on_a_loop
async def test_what_cannot_be_remembered_is_run_all_the_same() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self) -> str:
            return where()

    call = Unhashable()
    assert {await in_thread(call) for _ in range(2 * tempo.TRUSTED_AFTER)} == {OWN}


@pytest.mark.usefixtures("anything_is_quick")
@on_a_loop
async def test_the_thread_ends_when_it_is_idle_and_another_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(express, "IDLE_SECONDS", 0.05)
    seen: list[threading.Thread] = []

    def function() -> None:
        seen.append(threading.current_thread())

    lane = express.Express()
    monkeypatch.setattr("llmbroker.tools.workers._workers._express", lane)
    lane.start()
    await known(function)
    await in_thread(function)
    await asyncio.to_thread(lane.join, 5)
    assert not lane.is_alive()
    await in_thread(function)
    assert seen[-2] is lane
    assert seen[-1] is not lane


@pytest.mark.usefixtures("anything_is_quick")
@on_a_loop
async def test_no_call_is_lost_to_a_thread_that_is_just_about_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(express, "IDLE_SECONDS", 0.0005)

    def function() -> str:
        return "done"

    await known(function)
    for number in range(300):
        assert await in_thread(function) == "done"
        await asyncio.sleep(number % 10 / 10_000)
