"""The benchmark is run, briefly, so that it still works on the day somebody needs it."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "loop.py"
BRIEFLY = ("--loops", "2", "--rounds", "1", "--concurrency", "2", "--without-peer")


def test_the_loop_benchmark_measures_every_contender_and_judges_the_targets():
    command = [sys.executable, str(SCRIPT), *BRIEFLY]

    report = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    for contender in ("aiohttp by hand, asyncio", "AsyncBroker, uvloop", "Broker"):
        assert f"| {contender} | 1 |" in report
    assert "- Broker, 1 at once: " in report.partition("Targets: ")[2]
