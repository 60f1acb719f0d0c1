"""CPU of rendering a template with ten calls: ours, and Semantic Kernel's.

    .venv/bin/python benchmarks/templates.py --rounds 5 --count 500

Each contender runs in a process and an environment of its own; they alternate, round after
round. Semantic Kernel calls plain functions on the event loop, which then stands still; ours
run in threads, which costs what the first column shows.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import environments
import report

SCRIPT = Path(__file__).resolve().parent / "template_contender.py"
LIBRARIES = {"llmbroker": "ours", "Semantic Kernel": "semantic_kernel"}
KINDS = ("plain", "coroutine")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=500, help="renders per measurement")
    args = parser.parse_args()
    print(*(f"- {name}: {value}" for name, value in report.machine().items()), sep="\n")
    print(f"- medians of {args.rounds} × {args.count} renders; {environments.REQUIREMENTS}\n")
    print("| functions | llmbroker, CPU ms | Semantic Kernel, CPU ms | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for kind in KINDS:
        ours, theirs = _measure(kind, args.rounds, args.count)
        print(f"| ten {kind} functions | {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f} |")


def _measure(kind: str, rounds: int, count: int) -> list[float]:
    measured: dict[str, list[float]] = {library: [] for library in LIBRARIES}
    for _ in range(rounds):
        for library, contender in LIBRARIES.items():
            printed = environments.run(library, SCRIPT, contender, kind, "--count", str(count))
            measured[library].append(json.loads(printed)["cpu_ms"])
    return [statistics.median(each) for each in measured.values()]


if __name__ == "__main__":
    main()
