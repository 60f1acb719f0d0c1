"""One process of callers during an outage, for tests that need several: see test_outage.py.

    python -m tests.support.outage_callers BASE_URL REDIS_URL PREFIX SECONDS CALLERS

Says "ready", reads from standard input when to begin, and prints in the end, as JSON, how many
answers each model gave.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass

import llmbroker
from broker_project.shared_health import SharedHealth

SPEED = 20.0
"""A minute of an outage takes three seconds."""


@dataclass(frozen=True)
class HurriedClock:
    """Time that runs SPEED times as fast from ``since`` on, the same in all processes."""

    since: float

    def __call__(self) -> float:
        return self.since + (time.time() - self.since) * SPEED


def models(base_url: str, primary: str = "down") -> llmbroker.InMemoryRegistry:
    """The primary, and one to fall back on."""
    return llmbroker.InMemoryRegistry(
        llmbroker.LLMConfig(name, base_url, name, "KEY", weight=weight)
        for name, weight in ((primary, 0.9), ("sound", 0.1))
    )


async def call_until(broker: llmbroker.AsyncBroker, until: float, callers: int) -> Counter[str]:
    """Let ``callers`` call one call after another until the broker's clock says ``until``."""
    clock, answers = broker._parts.engine.clock, Counter[str]()

    async def call() -> None:
        while clock() < until:
            answers[(await broker.ask("hello")).llm_name] += 1
            await asyncio.sleep(0.02)

    await asyncio.gather(*(call() for _ in range(callers)))
    return answers


async def main(base_url: str, redis_url: str, prefix: str, seconds: str, callers: str) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    clock = HurriedClock(float(await asyncio.to_thread(sys.stdin.readline)))
    health = SharedHealth(redis_url, prefix=prefix, clock=clock)
    async with llmbroker.AsyncBroker(
        models(base_url), secrets={"KEY": "sk-wall"}, health=health, clock=clock
    ) as broker:
        answers = await call_until(broker, clock.since + float(seconds), int(callers))
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
