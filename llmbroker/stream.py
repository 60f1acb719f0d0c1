"""A streamed reply, as its caller holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self

from llmbroker.models import Completion, Usage
from llmbroker.routing.attempt import Attempt
from llmbroker.routing.streaming import LiveStream
from llmbroker.wire.deltas import Delta

Open = Callable[[], Awaitable[tuple[Attempt, LiveStream]]]
Rate = Callable[[str, float], Awaitable[None]]


class AsyncStream:
    """Iterates over the text of one reply; ``deltas`` gives reasoning and tool calls as well.

    The request leaves with the first piece asked for. ``llm_name`` and ``call_id`` are known
    from then on, ``completion`` and ``usage`` at the end. ``aclose``, or leaving ``async with``,
    stops the provider at once.
    """

    def __init__(self, open_: Open, rate: Rate, operation: str | None) -> None:
        self.operation = operation
        self._open = open_
        self._rate = rate
        self._live: LiveStream | None = None
        self._opening: asyncio.Task[tuple[Attempt, LiveStream]] | None = None
        self._closed = False

    @property
    def llm_name(self) -> str | None:
        """The model that answers, once it has begun."""
        return self._live.attempt.candidate.name if self._live else None

    @property
    def call_id(self) -> str | None:
        """The journal's id of this call, once the model has begun to answer."""
        return self._live.attempt.call_id if self._live else None

    @property
    def completion(self) -> Completion | None:
        """The whole answer, once it has ended."""
        return self._live.completion if self._live else None

    @property
    def usage(self) -> Usage | None:
        """What the answer used, once it has ended."""
        return self.completion.usage if self.completion else None

    async def next_delta(self) -> Delta | None:
        """The next piece of any kind, or None at the end. Raises LLMRequestError."""
        if self._closed:
            return None
        if self._live is None:
            self._live = await self._opened()
        if self._live is None or self._closed:
            await self.aclose()  # somebody closed it while it opened
            return None
        return await self._live.next()

    async def _opened(self) -> LiveStream | None:
        """The stream, or None if it was closed before it had begun."""
        self._opening = opening = asyncio.ensure_future(self._open())
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
            opening.cancel()
            opening.add_done_callback(_close)
            raise
        return None if opening.cancelled() else opening.result()[1]

    async def deltas(self) -> AsyncIterator[Delta]:
        """All pieces: text, reasoning and tool calls."""
        while (delta := await self.next_delta()) is not None:
            yield delta

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while (delta := await self.next_delta()) is not None:
            if delta.kind == "text":
                return delta.text
        raise StopAsyncIteration

    async def record_quality(self, score: float) -> None:
        """Rate this reply. Raises RuntimeError before it has begun."""
        if self.call_id is None:
            raise RuntimeError("nothing has been streamed yet, so there is nothing to rate")
        await self._rate(self.call_id, score)

    async def aclose(self) -> None:
        """Stop, and free the model's slot."""
        self._closed = True
        if self._live is not None:
            await self._live.aclose()
        elif self._opening is not None:
            self._opening.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _close(opening: asyncio.Task[tuple[Attempt, LiveStream]]) -> None:
    """Close what has opened although its reader was cancelled."""
    if not opening.cancelled() and opening.exception() is None:
        attempt, live = opening.result()
        attempt.in_background(live.aclose())
