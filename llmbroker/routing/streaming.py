"""A streamed answer of the pool, from its first content on."""

from __future__ import annotations

from contextlib import AsyncExitStack

from llmbroker.errors import StreamInterruptedError
from llmbroker.exchange import Source
from llmbroker.models import Completion
from llmbroker.routing.attempt import Attempt
from llmbroker.wire.completion import one_tool_call
from llmbroker.wire.deltas import Delta
from llmbroker.wire.failure import ExchangeError


class LiveStream:
    """Exactly one model speaks in it: after the first content no other may go on."""

    def __init__(self, attempt: Attempt, source: Source, connection: AsyncExitStack) -> None:
        self.attempt = attempt
        self.completion: Completion | None = None
        self._source = source
        self._connection = connection
        self._closed = False

    async def next(self) -> Delta | None:
        """The next piece, or None at the end, when ``completion`` is set.

        Raises StreamInterruptedError when the answer breaks off.
        """
        if self._closed:
            return None
        try:
            while (delta := await self._source.next()) is not None:
                if self._wanted(delta):
                    return delta
            completion = self._source.finish()
        except ExchangeError as error:
            failure = error.failure
        else:
            await self._disconnect()
            await self.attempt.succeed(completion)
            one = self.attempt.one_tool_only
            self.completion = one_tool_call(completion) if one else completion
            return None
        await self._disconnect()
        await self.attempt.fail(failure)
        name = self.attempt.candidate.name
        raise StreamInterruptedError(str(failure.to_error(name)), llm_name=name)

    async def aclose(self) -> None:
        """Stop reading: the connection is closed at once, so that the provider stops writing."""
        if not self._closed:
            await self._disconnect()
            await self.attempt.abandon()

    def _wanted(self, delta: Delta) -> bool:
        return not (self.attempt.one_tool_only and delta.kind == "tool_call" and delta.index)

    async def _disconnect(self) -> None:
        self._closed = True
        await self._connection.aclose()


async def open_stream(attempt: Attempt, timeout: float | None) -> LiveStream:
    """Ask, and read up to the first content within ``timeout`` seconds. Raises ExchangeError."""
    async with AsyncExitStack() as connection:
        source = await attempt.open(connection, timeout)
        return LiveStream(attempt, source, connection.pop_all())
