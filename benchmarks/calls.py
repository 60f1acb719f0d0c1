"""Many loops in flight, and the overhead of one call: ours beside a loop written by hand.

    .venv/bin/python benchmarks/calls.py                 # 1,000 loops of three 1 s calls
    .venv/bin/python benchmarks/calls.py --peer          # beside PyPI's llmbroker as well: minutes

Every contender runs in a process of its own. The first table is makespan over ideal and peak
memory with ``--loops`` loops in flight against a server that answers after ``--latency``
seconds; the second is the time of one whole loop against a 0 s server, median and 99th
percentile, and what a call adds to the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import conversation

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER_FOLDER = ROOT / ".data" / "bench" / "peer-venv"


def main() -> None:
    """Measure, and print Markdown."""
    arguments = _parser().parse_args()
    if arguments.contender:
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            runner.run(_measure(arguments))
        return
    names = {"aiohttp by hand": "by_hand", "AsyncBroker": "async_broker_coroutine_tools"}
    print("| contender | loops in flight | makespan ÷ ideal | CPU ms per loop | peak MB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with _server(arguments.latency) as url:
        for label, contender, python in _contenders(names, peer_too=arguments.peer):
            figures = _run(python, contender, url, ["--loops", str(arguments.loops)])
            ideal = conversation.CALLS * arguments.latency
            print(
                f"| {label} | {arguments.loops} | {figures['seconds'] / ideal:.2f} |"
                f" {figures['cpu'] / arguments.loops * 1000:.1f} | {figures['peak_mb']:.0f} |",
                flush=True,
            )
    print("\n| contender | median ms per call | p99 ms per call | added to the floor, median |")
    print("| --- | ---: | ---: | ---: |")
    floor = None
    with _server(0.0) as url:
        for label, contender, python in _contenders(names, peer_too=arguments.peer):
            figures = _run(python, contender, url, ["--one-by-one", "500"])
            floor = floor if floor is not None else figures["median"]
            added = figures["median"] - floor
            print(f"| {label} | {figures['median']:.2f} | {figures['p99']:.2f} | {added:.2f} |")


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, as in production; the peer's environment has none."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _contenders(names: dict[str, str], *, peer_too: bool) -> Iterator[tuple[str, str, Path]]:
    for label, contender in names.items():
        yield label, contender, Path(sys.executable)
    if peer_too:
        import peer

        yield peer.REQUIREMENT, "async_broker", peer.python(PEER_FOLDER)


def _run(python: Path, contender: str, url: str, options: list[str]) -> dict[str, float]:
    path = [str(ROOT)] if python == Path(sys.executable) else []
    environment = {"PYTHONPATH": ":".join([str(HERE), *path]), "PATH": "/usr/bin:/bin"}
    command = [python, __file__, "--contender", contender, "--url", url, *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@contextmanager
def _server(latency: float) -> Iterator[str]:
    command = [sys.executable, HERE / "fake_server.py", "--latency", str(latency)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.stdin.close()


async def _measure(arguments: argparse.Namespace) -> None:
    from clients import ASYNC

    async with ASYNC[arguments.contender](arguments.url, 1) as loop:
        if arguments.one_by_one:
            print(json.dumps(await _one_by_one(loop, arguments.one_by_one)))
        else:
            print(json.dumps(await _all_at_once(loop, arguments.loops)))


async def _all_at_once(loop, loops: int) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(loop() for _ in range(loops)))
    return {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def _one_by_one(loop, loops: int) -> dict[str, float]:
    times = []
    for number in range(loops + 50):
        began = time.perf_counter()
        await loop()
        if number >= 50:
            times.append((time.perf_counter() - began) * 1000 / conversation.CALLS)
    times.sort()
    return {"median": times[len(times) // 2], "p99": times[int(len(times) * 0.99)]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loops", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--peer", action="store_true", help="PyPI's llmbroker as well")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--one-by-one", type=int, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
