"""Runs one contender in this process, and prints what it cost as JSON.

CPU is the whole process's, user and system, all threads, without import and warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import resource
import time
from collections.abc import Callable

import clients
import conversation

WARM_UP = 50


def main() -> None:
    """Measure the contender that the command line names."""
    args = _arguments()
    if args.client in clients.SYNC:
        measured = _measure_blocking(args)
    else:
        with asyncio.Runner(loop_factory=_loop_factory(args.event_loop)) as runner:
            measured = runner.run(_measure(args))
    print(json.dumps(measured))


async def _measure(args: argparse.Namespace) -> dict[str, float]:
    async with clients.ASYNC[args.client](args.base_url, args.models) as loop:
        await _run(loop, max(WARM_UP, args.concurrency), args.concurrency)
        spent = _stopwatch()
        await _run(loop, args.loops, args.concurrency)
        return spent(args.loops)


async def _run(loop: clients.AsyncLoop, loops: int, concurrency: int) -> None:
    remaining = itertools.repeat(None, loops)

    async def work() -> None:
        for _ in remaining:
            _check(await loop())

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())


def _measure_blocking(args: argparse.Namespace) -> dict[str, float]:
    with clients.SYNC[args.client](args.base_url, args.models) as loop:
        for _ in range(WARM_UP):
            _check(loop())
        spent = _stopwatch()
        for _ in range(args.loops):
            _check(loop())
        return spent(args.loops)


def _check(reply: object) -> None:
    """A contender that gives up early would be cheap."""
    text = reply if isinstance(reply, str) else getattr(reply, "text", None)
    if text != conversation.ANSWER:
        raise SystemExit(f"the loop did not reach the answer: {reply!r}")


def _stopwatch() -> Callable[[int], dict[str, float]]:
    wall, cpu = time.perf_counter(), _cpu()

    def spent(loops: int) -> dict[str, float]:
        return {
            "cpu_ms": (_cpu() - cpu) / loops * 1000,
            "loops_per_second": loops / (time.perf_counter() - wall),
        }

    return spent


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if name == "asyncio":
        return asyncio.new_event_loop
    import uvloop

    return uvloop.new_event_loop


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", choices=[*clients.ASYNC, *clients.SYNC])
    parser.add_argument("base_url")
    parser.add_argument("--event-loop", choices=["asyncio", "uvloop"], default="asyncio")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--loops", type=int, default=500)
    parser.add_argument("--models", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
