"""How many calls each model has in flight, and who waits for one to end."""

from __future__ import annotations

import asyncio
from collections import Counter

from llmbroker.models import LLMConfig


class Slots:
    """Counts calls in flight per model; ``parallel`` caps them across all callers."""

    def __init__(self) -> None:
        self._taken: Counter[tuple[str, str]] = Counter()
        self._waiting: dict[asyncio.Future[None], bool] = {}  # in order; whether for a slot

    @property
    def waiting(self) -> int:
        """How many callers wait."""
        return len(self._waiting)

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
        """Give a slot back and wake who has waited longest for one."""
        self._taken[_identity(config)] -= 1
        self._wake()

    async def released(self, for_slot: bool, timeout: float) -> None:  # noqa: FBT001
        """Wait until it is this caller's turn for a slot, or ``timeout`` seconds have passed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = for_slot
        try:
            await asyncio.wait([future], timeout=timeout)
        except asyncio.CancelledError:
            if future.done():
                self._wake()  # this caller has no use for its turn
            raise
        finally:
            self._waiting.pop(future, None)

    def _wake(self) -> None:
        for future, for_slot in self._waiting.items():
            if for_slot and not future.done():
                future.set_result(None)
                return


def _identity(config: LLMConfig) -> tuple[str, str]:
    return config.base_url, config.model
