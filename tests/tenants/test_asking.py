"""Those who ask the same at the same time share an answer that is no older than their question."""

import asyncio

import pytest

from tenants.asking import Asking


def asked_at_once(seek, times, *, pause=0.0):
    """What ``times`` askers get who come one after another."""

    async def ask():
        asking = Asking()
        tasks = []
        for _ in range(times):
            tasks.append(asyncio.ensure_future(asking.ask("keys", seek)))
            await asyncio.sleep(pause)
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(ask())


def counting(seconds):
    begun = []

    async def seek():
        begun.append(1)
        number = len(begun)
        await asyncio.sleep(seconds)
        return number

    return seek


def test_all_who_come_while_one_is_answered_share_the_next_answer():
    assert asked_at_once(counting(0.2), 5, pause=0.01) == [1, 2, 2, 2, 2]


def test_who_comes_later_is_answered_anew():
    assert asked_at_once(counting(0.0), 3, pause=0.02) == [1, 2, 3]


def test_a_failure_is_told_to_all_who_share_it_and_to_nobody_after():
    begun = []

    async def seek():
        begun.append(1)
        await asyncio.sleep(0.02)
        if len(begun) == 1:
            raise OSError("away")
        return "there"

    first, second = asked_at_once(seek, 2, pause=0.001)
    assert isinstance(first, OSError)
    assert second == "there"


def test_who_goes_away_takes_no_answer_with_it():
    async def ask():
        asking, seek = Asking(), counting(0.02)
        leaving = asyncio.ensure_future(asking.ask("keys", seek))
        await asyncio.sleep(0)
        staying = asyncio.ensure_future(asking.ask("keys", seek))
        await asyncio.sleep(0.001)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        return await staying

    assert asyncio.run(ask()) in (1, 2)
