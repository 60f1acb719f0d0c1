"""One exchange with one provider: a request out, an answer in, whole or as it arrives."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TypeVar

from llmbroker.models import ApiKey, Completion, LLMConfig
from llmbroker.transport import LiveAnswer, Timeouts, Transport
from llmbroker.wire.completion import parse_completion
from llmbroker.wire.deltas import Delta, StreamAssembler
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.failures import read_failure
from llmbroker.wire.profiles import origin_of
from llmbroker.wire.request import Request
from llmbroker.wire.sse import EventParser

Result = TypeVar("Result")

_FAREWELL = 2.0
"""Seconds that usage and ``[DONE]`` may take after the answer has ended."""


class Exchange:
    """Asks ``config``'s model with ``key``. All its methods raise ExchangeError."""

    def __init__(self, transport: Transport, config: LLMConfig, key: ApiKey) -> None:
        self.timeouts = transport.timeouts
        self._transport = transport
        self._origin = origin_of(config)
        self._guarded = config.guarded
        self._secrets = (key.value,) if key.value else ()

    async def whole(
        self, request: Request, *, timeout: float | None, max_tokens: int | None = None
    ) -> Completion:
        """The whole answer within ``timeout`` seconds."""
        answer = await self._transport.post(request, timeout=timeout, guarded=self._guarded)
        if answer.status != 200:
            raise self._error(answer.status, answer.headers, answer.body)
        return self._parse(answer.body, max_tokens)

    async def open(
        self,
        request: Request,
        connection: AsyncExitStack,
        *,
        timeout: float | None,
        max_tokens: int | None = None,
        patient: bool = False,
    ) -> Source:
        """The answer as it arrives, once its first content is there, within ``timeout`` seconds.

        It is read as long as ``connection`` is open; closing that cancels upstream. ``patient``
        is for an answer that is wanted whole: silence then has no limit but the answer's own.
        """
        limits = self.timeouts.patient() if patient else self.timeouts
        limit = limits.first_token if timeout is None else min(timeout, limits.first_token)
        opening = self._first_content(request, connection, max_tokens, limits)
        return await within(limit, opening, FailureKind.TIMEOUT)

    async def _first_content(
        self,
        request: Request,
        connection: AsyncExitStack,
        max_tokens: int | None,
        limits: Timeouts,
    ) -> Source:
        answer = await connection.enter_async_context(
            self._transport.open(request, guarded=self._guarded)
        )
        if answer.status != 200:
            raise self._error(answer.status, answer.headers, await answer.body())
        if answer.headers.get("content-type", "").startswith("application/json"):
            return Whole(self._parse(await answer.body(), max_tokens))
        assembler = StreamAssembler(self._origin, max_tokens=max_tokens, secrets=self._secrets)
        source = Source(answer, assembler, limits)
        await source.wait_for_content()
        return source

    def _parse(self, body: bytes, max_tokens: int | None) -> Completion:
        return parse_completion(
            body, origin=self._origin, max_tokens=max_tokens, secrets=self._secrets
        )

    def _error(self, status: int, headers: Mapping[str, str], body: bytes) -> ExchangeError:
        failure = read_failure(status, headers, body, secrets=self._secrets, now=datetime.now(UTC))
        return ExchangeError(failure)


class Source:
    """Deltas out of an HTTP answer."""

    def __init__(self, answer: LiveAnswer, assembler: StreamAssembler, timeouts: Timeouts) -> None:
        self._answer = answer
        self._parser = EventParser()
        self._assembler = assembler
        self._timeouts = timeouts
        self._ready: deque[Delta] = deque()
        self._ended = False

    async def next(self) -> Delta | None:
        """The next piece, or None when nothing more comes."""
        if not self._ready and not self._ended:
            await self._read_on()
        return self._ready.popleft() if self._ready else None

    async def wait_for_content(self) -> None:
        """Read up to the first piece; an answer without any is a failure. Raises ExchangeError."""
        await self._read()
        if not self._ready:
            self._assembler.finish()
            raise ExchangeError(Failure(FailureKind.EMPTY_ANSWER))

    def finish(self) -> Completion:
        """The whole answer, unless it was cut or says nothing."""
        return self._assembler.finish()

    async def _read_on(self) -> None:
        stall = self._timeouts.stall
        limit = max(stall, self._timeouts.first_token)
        if self._assembler.is_whole:
            stall = limit = min(stall, _FAREWELL)
        try:
            await self._read(stall=stall, limit=limit)
        except ExchangeError as error:
            if not self._assembler.is_whole or error.failure.kind is not FailureKind.STREAM_CUT:
                raise
            self._ended = True  # all was said; only the end of the stream is missing

    async def _read(self, *, stall: float | None = None, limit: float = math.inf) -> None:
        """Read up to the next piece. Whatever comes ends a silence, for up to ``limit`` seconds."""
        clock = asyncio.get_running_loop().time
        end = clock() + limit
        while not self._ready and not self._ended:
            if stall is None:
                chunk = await self._answer.chunk()
            else:
                seconds = max(0.0, min(stall, end - clock()))
                chunk = await within(seconds, self._answer.chunk(), FailureKind.STREAM_CUT)
            self._ended = not chunk
            for event in self._parser.feed(chunk) if chunk else self._parser.flush():
                self._ready += self._assembler.feed(event)
                self._ended = self._ended or self._assembler.done


class Whole(Source):
    """The answer of a server that was asked to stream and did not."""

    def __init__(self, completion: Completion) -> None:
        self._completion = completion
        self._ready = deque([Delta("text", completion.text)] if completion.text else [])
        self._ended = True

    def finish(self) -> Completion:
        """The whole answer."""
        return self._completion


async def within(seconds: float, work: Awaitable[Result], late: FailureKind) -> Result:
    """The result of ``work``; ExchangeError of kind ``late`` when it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        failure = Failure(late, detail=f"nothing for {seconds:g} s")
    raise ExchangeError(failure)
