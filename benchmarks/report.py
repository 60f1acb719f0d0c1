"""What was measured, as a Markdown table with the facts of the machine and the targets."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

PEER_TARGET = 5.0
"""How many times cheaper than the peer a loop must be."""

FLOOR_TARGET = 2.0
"""How many times the floor's cost a loop may have."""


@dataclass(frozen=True)
class Result:
    """One contender; ``cpu_ms`` is CPU per tool loop, one figure per round."""

    name: str
    family: str
    event_loop: str
    concurrency: int
    cpu_ms: Sequence[float]
    loops_per_second: float

    @property
    def label(self) -> str:
        """Name and concurrency, unique."""
        return f"{self.name}, {self.concurrency} at once"


@dataclass(frozen=True)
class Ratios:
    """CPU as a multiple of the floor's on the same event loop; the peer's as a multiple of it.

    Both are medians over the rounds: what slows a round down slows all its contenders.
    """

    of_floor: float | None
    below_peer: float | None


def ratios(results: Sequence[Result]) -> dict[str, Ratios]:
    """The ratios of each result, by label, at its own concurrency."""
    floors = {
        (each.event_loop, each.concurrency): each.cpu_ms
        for each in results
        if each.family == "floor"
    }
    peers = {
        (_blocking(each), each.concurrency): each.cpu_ms
        for each in results
        if each.family == "peer"
    }
    return {
        each.label: Ratios(
            _ratio(each.cpu_ms, floors.get((_loop_of(each), each.concurrency))),
            _ratio(peers.get((_blocking(each), each.concurrency)), each.cpu_ms),
        )
        for each in results
    }


def markdown(results: Sequence[Result], facts: Mapping[str, object]) -> str:
    """Facts, table and targets."""
    compared = ratios(results)
    lines = [
        *(f"- {name}: {value}" for name, value in facts.items()),
        "",
        "| contender | at once | CPU ms per loop | range | × floor | peer ÷ this |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in results:
        ratio = compared[each.label]
        lines.append(
            f"| {each.name} | {each.concurrency} | {statistics.median(each.cpu_ms):.2f} "
            f"| {min(each.cpu_ms):.2f}–{max(each.cpu_ms):.2f} "
            f"| {_figure(ratio.of_floor)} | {_figure(ratio.below_peer)} |"
        )
    return "\n".join([*lines, "", *_targets(results, compared)])


def machine() -> dict[str, object]:
    """What the figures depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("aiohttp", "uvloop", "orjson"))
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release()}, load {load} at the start",
        "software": f"Python {platform.python_version()}, {packages}",
    }


def _targets(results: Sequence[Result], compared: Mapping[str, Ratios]) -> list[str]:
    lines = []
    for each in results:
        ratio = compared[each.label]
        if each.family != "ours" or ratio.of_floor is None:
            continue
        verdicts = [f"{ratio.of_floor:.2f} × the floor ({_met(ratio.of_floor <= FLOOR_TARGET)})"]
        if ratio.below_peer is not None:
            met = _met(ratio.below_peer >= PEER_TARGET)
            verdicts.append(f"1/{ratio.below_peer:.1f} of the peer ({met})")
        lines.append(f"- {each.label}: {', '.join(verdicts)}")
    aim = f"Targets: at most {FLOOR_TARGET:g} × the floor, at most 1/{PEER_TARGET:g} of the peer."
    return [aim, "", *lines]


def _met(met: bool) -> str:  # noqa: FBT001 - what it says is its only argument
    return "met" if met else "missed"


def _blocking(result: Result) -> bool:
    return result.event_loop == "thread"


def _loop_of(result: Result) -> str:
    """The event loop that does the work: our blocking Broker's thread runs uvloop's."""
    if _blocking(result):
        return "uvloop" if result.family == "ours" else "asyncio"
    return result.event_loop


def _ratio(above: Sequence[float] | None, below: Sequence[float] | None) -> float | None:
    if above is None or below is None:
        return None
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


def _figure(value: float | None) -> str:
    return f"{value:.2f}" if value is not None else "–"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [
        line.partition(":")[2].strip()
        for line in (info.read_text().splitlines() if info.exists() else [])
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor() or platform.machine()
