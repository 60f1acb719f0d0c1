"""How many calls each model has in flight, and who waits for one to end."""

from __future__ import annotations

import asyncio
from collections import Counter

from llmbroker.models import LLMConfig


class Slots:
    """Counts calls in flight per model; ``parallel`` caps them across all callers."""

    def __init__(self) -> None:
        self._taken: Counter[tuple[str, str]] = Counter()
        self._waiting: set[asyncio.Future[None]] = set()

    def take(self, config: LLMConfig) -> bool:
        """Take a slot if one is free."""
        if not self.free(config):
            return False
        self._taken[_identity(config)] += 1
        return True

    def free(self, config: LLMConfig) -> bool:
        """Whether a slot is free."""
        return config.parallel is None or self._taken[_identity(config)] < config.parallel

    def release(self, config: LLMConfig) -> None:
        """Give a slot back and wake whoever waits."""
        self._taken[_identity(config)] -= 1
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def released(self, timeout: float | None) -> None:
        """Wait until any slot is released, or ``timeout`` seconds have passed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait([future], timeout=timeout)
        finally:
            self._waiting.discard(future)


def _identity(config: LLMConfig) -> tuple[str, str]:
    return config.base_url, config.model
