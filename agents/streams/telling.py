"""What models say, told while they say it; gathered, for all runs of a worker together.

Only runs that somebody listens to are told of, or that asked for it: reading a stream costs
several times what reading an answer does. What is told may get lost: the answer itself is kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from agents.models import Run, Step
from agents.streams.frames import DELTA, REASONING, RESET, channel_of, live_json, packed
from agents.streams.publishing import publisher
from llmbroker import Delta

GATHER = 0.05
"""Seconds for which pieces are gathered after some have been told."""

LOOK_EVERY = 0.5
"""Seconds between two looks at who listens."""

T = TypeVar("T")

_TYPES = {"text": DELTA, "reasoning": REASONING}


class Telling:
    """Belongs to one event loop. Redis is asked and told in threads, and fails nothing."""

    def __init__(self) -> None:
        self._listened: frozenset[bytes] = frozenset()
        self._waiting: dict[Said, None] = {}
        self._sending = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None
        # Not the loop's own threads: those look up names, which may take long.
        self._thread = ThreadPoolExecutor(1, "telling")

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Know who listens, for as long as the block runs; what is left to tell is told then."""
        await self._look()
        task = asyncio.ensure_future(self._look_again())
        try:
            yield
        finally:
            task.cancel()
            await self.send()
            self._thread.shutdown(wait=False)

    def of(self, run: Run, step: Step) -> Said | None:
        """Where a call of a model says what it says; None where nobody wants to know."""
        is_wanted = run.deltas or (self._listened and channel_of(run.id).encode() in self._listened)
        return Said(self, run.id, step) if is_wanted else None

    def soon(self, said: Said) -> None:
        """Tell what ``said`` holds: now, or a moment after what was told last."""
        self._waiting[said] = None
        if self._flushing is None:
            self._flushing = asyncio.ensure_future(self._flush())

    async def send(self) -> None:
        """Return when all that was said so far is told, or cannot be."""
        async with self._sending:
            waiting, self._waiting = self._waiting, {}
            messages: dict[UUID, list[dict[str, Any]]] = {}
            for said in waiting:
                messages.setdefault(said.run_id, []).extend(said.taken())
            told = {run_id: packed(shown) for run_id, shown in messages.items() if shown}
            if told:
                await self._in_thread(partial(publisher().send, told))

    async def _flush(self) -> None:
        try:
            while self._waiting:
                await self.send()
                await asyncio.sleep(GATHER)
        finally:
            self._flushing = None

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self._look()

    async def _look(self) -> None:
        self._listened = await self._in_thread(publisher().listened)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class Said:
    """What one call of a model says, as ``on_delta`` of it. On the event loop's thread only."""

    def __init__(self, telling: Telling, run_id: UUID, step: Step) -> None:
        self.run_id = run_id
        self._telling = telling
        self._step = step.number
        # A worker that was lost may have told something of this step already.
        self._is_anew = step.attempts > 1
        self._was_told = False
        self._pieces: list[tuple[str, list[str]]] = []
        self._numbers: Counter[str] = Counter()

    def __call__(self, delta: Delta | None) -> None:
        """Take a piece; None voids those before it."""
        if delta is None:
            self.void()
            return
        kind = _TYPES.get(delta.kind)
        if kind is None or not delta.text:
            return
        if self._pieces and self._pieces[-1][0] == kind:
            self._pieces[-1][1].append(delta.text)
        else:
            self._pieces.append((kind, [delta.text]))
        self._telling.soon(self)

    def void(self) -> None:
        """Nothing of what was said stands."""
        self._pieces.clear()
        if self._was_told:
            self._is_anew, self._was_told = True, False
            self._telling.soon(self)

    async def end(self) -> None:
        """Return when all was told, so that nothing follows what comes next."""
        await self._telling.send()

    def taken(self) -> list[dict[str, Any]]:
        """The events to tell now."""
        shown = [live_json(RESET, step=self._step)] if self._is_anew else []
        if self._is_anew:
            self._is_anew = False
            self._numbers.clear()
        for kind, texts in self._pieces:
            self._was_told = True
            text, index = "".join(texts), self._numbers[kind]
            shown.append(live_json(kind, step=self._step, index=index, delta=text))
            self._numbers[kind] += 1
        self._pieces = []
        return shown
