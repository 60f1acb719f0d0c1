"""A streamed answer of the pool, from its first content on."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import AsyncExitStack, suppress

from llmbroker.errors import StreamInterruptedError
from llmbroker.exchange import Source, within
from llmbroker.models import Completion
from llmbroker.routing.attempt import Attempt
from llmbroker.wire.completion import one_tool_call
from llmbroker.wire.deltas import Delta, OnDelta
from llmbroker.wire.failure import ExchangeError, FailureKind


class LiveStream:
    """Exactly one model speaks in it: after the first content no other may go on."""

    def __init__(self, attempt: Attempt, source: Source, connection: AsyncExitStack) -> None:
        self.attempt = attempt
        self.completion: Completion | None = None
        self._source = source
        self._connection = connection
        self._closed = False
        # A reader that breaks off and forgets the stream would leave its slot taken for ever.
        self._forgotten = weakref.finalize(
            self, _forget, asyncio.get_running_loop(), attempt, connection
        )
        self._forgotten.atexit = False

    async def next(self) -> Delta | None:
        """The next piece, or None at the end, when ``completion`` is set.

        Raises StreamInterruptedError when the answer breaks off by itself.
        """
        if self._closed:
            return None
        try:
            delta = await self._piece()
            completion = self._source.finish() if delta is None else None
        except ExchangeError as error:
            failure = error.failure
        else:
            if completion is not None:
                self.completion = await self._finished(completion)
            return delta
        if self._was_closed():
            return None
        await self._disconnect()
        await self.attempt.fail(failure)
        name = self.attempt.candidate.name
        raise StreamInterruptedError(str(failure.to_error(name)), llm_name=name)

    async def told(self, tell: OnDelta, timeout: float) -> Completion:
        """The whole answer within ``timeout`` seconds, each piece told as it arrives.

        Raises ExchangeError when it breaks off; how the attempt has failed is then for the
        caller to say.
        """
        try:
            completion = await within(timeout, self._told(tell), FailureKind.TIMEOUT)
        except ExchangeError:
            await self._disconnect()
            raise
        except BaseException:
            await self.aclose()
            raise
        return await self._finished(completion)

    async def aclose(self) -> None:
        """Stop reading: the connection is closed at once, so that the provider stops writing."""
        await self._disconnect()
        await self.attempt.abandon()

    async def _told(self, tell: OnDelta) -> Completion:
        while (delta := await self._piece()) is not None:
            tell(delta)
        return self._source.finish()

    async def _piece(self) -> Delta | None:
        while (delta := await self._source.next()) is not None:
            if self._wanted(delta):
                return delta
        return None

    async def _finished(self, completion: Completion) -> Completion:
        await self._disconnect()
        await self.attempt.succeed(completion)
        return one_tool_call(completion) if self.attempt.one_tool_only else completion

    def _was_closed(self) -> bool:
        """Whether ``aclose`` has broken the answer off while it was being read."""
        return self._closed

    def _wanted(self, delta: Delta) -> bool:
        return not (delta.kind == "tool_call" and delta.index and self.attempt.one_tool_only)

    async def _disconnect(self) -> None:
        self._closed = True
        self._forgotten.detach()
        await self._connection.aclose()


async def open_stream(
    attempt: Attempt, timeout: float | None, *, patient: bool = False
) -> LiveStream:
    """Ask, and read up to the first content within ``timeout`` seconds. Raises ExchangeError."""
    async with AsyncExitStack() as connection:
        source = await attempt.open(connection, timeout, patient=patient)
        return LiveStream(attempt, source, connection.pop_all())


def _forget(loop: asyncio.AbstractEventLoop, attempt: Attempt, connection: AsyncExitStack) -> None:
    with suppress(RuntimeError):  # the loop has ended, and all connections with it
        loop.call_soon_threadsafe(lambda: attempt.in_background(_close(attempt, connection)))


async def _close(attempt: Attempt, connection: AsyncExitStack) -> None:
    await connection.aclose()
    await attempt.abandon()
