"""A call knows which step of which run it is part of."""

import asyncio

from llmbroker.attribution import attributed, attribution
from llmbroker.loop_thread import LoopThread


async def seen():
    return await asyncio.ensure_future(_seen())


async def _seen():
    return attribution()


def test_it_reaches_the_loops_thread_from_blocking_code():
    loop = LoopThread()
    with attributed(run="r1", step=2):
        inside = loop.run(seen())
    outside = loop.run(seen())
    loop.close()
    assert (inside.run, inside.step) == ("r1", 2)
    assert (outside.run, outside.step) == (None, None)


def test_runs_at_the_same_time_keep_apart():
    async def one(run):
        with attributed(run=run):
            await asyncio.sleep(0)
            return (await seen()).run

    async def both():
        return await asyncio.gather(one("a"), one("b"))

    assert asyncio.run(both()) == ["a", "b"]
