"""CPU per three-call tool loop: ours, the peer's, and a loop written by hand.

    .venv/bin/python benchmarks/loop.py --rounds 5 --loops 500

Every contender runs in a process of its own against one model server in another; contenders
alternate, round after round, so that what else the machine does falls on all of them.
docs/benchmarks.md says how to read the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import peer
import report

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER_FOLDER = ROOT / ".data" / "bench" / "peer-venv"


@dataclass(frozen=True)
class Contender:
    """``family`` is floor, ours or peer; ``event_loop`` is thread for the blocking ones."""

    name: str
    family: str
    client: str
    event_loop: str
    concurrency: int

    @property
    def label(self) -> str:
        """What progress and failures call it."""
        return f"{self.name}, {self.concurrency} at once"


def contenders(concurrency: int) -> list[Contender]:
    """All of them, each sequential and, where it can be, with ``concurrency`` loops at once."""
    both = (1, concurrency)
    kinds = [
        ("aiohttp by hand, asyncio", "floor", "by_hand", "asyncio", both),
        ("aiohttp by hand, uvloop", "floor", "by_hand", "uvloop", both),
        ("AsyncBroker, asyncio", "ours", "async_broker", "asyncio", both),
        ("AsyncBroker, uvloop", "ours", "async_broker", "uvloop", both),
        ("same, coroutine tools", "ours", "async_broker_coroutine_tools", "uvloop", both),
        ("Broker", "ours", "broker", "thread", (1,)),
        (f"{peer.REQUIREMENT} AsyncBroker", "peer", "async_broker", "asyncio", both),
        (f"{peer.REQUIREMENT} Broker", "peer", "broker", "thread", (1,)),
    ]
    return [
        Contender(name, family, client, event_loop, each)
        for name, family, client, event_loop, concurrencies in kinds
        for each in concurrencies
    ]


def main() -> None:
    """Measure and print."""
    args = _arguments()
    facts = report.machine()
    facts["rounds"] = (
        f"medians of {args.rounds} × {args.loops} loops; models in the pool: {args.models}; "
        f"{args.latency * 1000:g} ms server"
    )
    results = _measure(args)
    if args.json:
        print(json.dumps({"facts": facts, "results": [asdict(each) for each in results]}))
    else:
        print(report.markdown(results, facts))


def _measure(args: argparse.Namespace) -> list[report.Result]:
    pythons = {"floor": Path(sys.executable), "ours": Path(sys.executable)}
    if not args.without_peer:
        pythons["peer"] = peer.python(PEER_FOLDER)
    field = [each for each in contenders(args.concurrency) if each.family in pythons]
    rounds: dict[Contender, list[dict[str, float]]] = {each: [] for each in field}
    with _server(args.latency) as base_url:
        for number in range(args.rounds):
            for contender in field:
                print(f"round {number + 1}: {contender.label}", file=sys.stderr)
                measured = _run(pythons[contender.family], contender, base_url, args)
                rounds[contender].append(measured)
    return [_result(contender, measured) for contender, measured in rounds.items()]


def _run(
    python: Path, contender: Contender, base_url: str, args: argparse.Namespace
) -> dict[str, float]:
    command = [
        *(python, HERE / "contender.py", contender.client, base_url),
        *("--concurrency", str(contender.concurrency)),
        *("--loops", str(args.loops), "--models", str(args.models)),
    ]
    if contender.event_loop != "thread":
        command += ["--event-loop", contender.event_loop]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if contender.family == "ours":
        env["PYTHONPATH"] = str(args.engine)  # the peer must not see this llmbroker
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{contender.label} failed with status {done.returncode}")
    return json.loads(done.stdout)


@contextmanager
def _server(latency: float) -> Iterator[str]:
    command = [sys.executable, str(HERE / "fake_server.py"), "--latency", str(latency)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            port = int(process.stdout.readline()) if process.stdout else 0
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _result(contender: Contender, measured: list[dict[str, float]]) -> report.Result:
    return report.Result(
        name=contender.name,
        family=contender.family,
        event_loop=contender.event_loop,
        concurrency=contender.concurrency,
        cpu_ms=[each["cpu_ms"] for each in measured],
        loops_per_second=statistics.median(each["loops_per_second"] for each in measured),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loops", type=int, default=500, help="tool loops per measurement")
    parser.add_argument("--concurrency", type=int, default=100, help="loops at once")
    parser.add_argument("--models", type=int, default=1, help="models in the pool")
    parser.add_argument("--latency", type=float, default=0.0, help="of the server, in seconds")
    parser.add_argument(
        "--engine", type=Path, default=ROOT, help="folder that holds our llmbroker, to try a change"
    )
    parser.add_argument("--without-peer", action="store_true", help="install and run no peer")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    main()
