"""Broker: AsyncBroker for blocking code. Every method runs the async one on a loop thread."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from llmbroker.broker import AsyncBroker
from llmbroker.caller import AsyncCaller
from llmbroker.direct import AsyncDirectClient
from llmbroker.loop_thread import LoopThread
from llmbroker.models import ApiKey, Call, Completion, Message, ToolSchema, Usage
from llmbroker.reply import AsyncReply, DirectResult, Reply
from llmbroker.routing.call import Prefer
from llmbroker.snapshot import ModelStats, Snapshot
from llmbroker.stream import AsyncStream
from llmbroker.wire.deltas import Delta, OnDelta

Result = TypeVar("Result")


class Caller:
    """Blocking AsyncCaller. Safe to use from any number of threads."""

    def __init__(self, caller: AsyncCaller, loop: LoopThread) -> None:
        self._caller = caller
        self._loop = loop

    @property
    def scope(self) -> str | None:
        """In whose name; None is the installation."""
        return self._caller.scope

    def ask(self, prompt: str, **kwargs: Any) -> Reply:
        """``chat`` with one user message."""
        return self._reply(self._loop.run(self._caller.ask(prompt, **kwargs)))

    def chat(
        self,
        messages: list[Message],
        *,
        tools: list[ToolSchema] | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        wait: float | None = None,
        fastest_of: int | None = None,
        response_format: Mapping[str, Any] | None = None,
        params: Mapping[str, object] | None = None,
        prefer: Prefer = "quality",
        on_delta: OnDelta | None = None,
    ) -> Reply:
        """See AsyncCaller.chat. ``on_delta`` is called in the broker's own thread."""
        work = self._caller.chat(
            messages,
            tools=tools,
            operation=operation,
            trace_id=trace_id,
            wait=wait,
            fastest_of=fastest_of,
            response_format=response_format,
            params=params,
            prefer=prefer,
            on_delta=on_delta,
        )
        return self._reply(self._loop.run(work))

    def stream(self, prompt: str | None = None, **kwargs: Any) -> Stream:
        """See AsyncCaller.stream."""
        return Stream(self._caller.stream(prompt, **kwargs), self._loop)

    def direct(
        self, alias: str | None = None, *, name: str | None = None, key: ApiKey | None = None
    ) -> DirectClient:
        """A client for exactly one model; a missing model or key is reported at once.

        Raises UnknownModelError or MissingKeyError.
        """
        client = self._caller.direct(alias, name=name, key=key)
        self._loop.run(_checked(client))
        return DirectClient(client, self._loop)

    def record_quality(
        self, score: float, *, call_id: str | None = None, trace_id: str | None = None
    ) -> None:
        """See AsyncCaller.record_quality."""
        self._loop.run(self._caller.record_quality(score, call_id=call_id, trace_id=trace_id))

    def calls(
        self,
        limit: int = 100,
        *,
        since: datetime | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        call_id: str | None = None,
    ) -> list[Call]:
        """See AsyncCaller.calls."""
        work = self._caller.calls(
            limit, since=since, operation=operation, trace_id=trace_id, call_id=call_id
        )
        return self._loop.run(work)

    def stats(
        self, *, since: datetime | None = None, operation: str | None = None
    ) -> dict[str, ModelStats]:
        """See AsyncCaller.stats."""
        return self._loop.run(self._caller.stats(since=since, operation=operation))

    def snapshot(self) -> Snapshot:
        """See AsyncCaller.snapshot."""
        return self._loop.run(self._caller.snapshot())

    def _reply(self, reply: AsyncReply) -> Reply:
        return Reply(
            text=reply.text,
            tool_calls=reply.tool_calls,
            usage=reply.usage,
            llm_name=reply.llm_name,
            call_id=reply.call_id,
            operation=reply.operation,
            finish_reason=reply.finish_reason,
            reasoning=reply.reasoning,
            model=reply.model,
            key_source=reply.key_source,
            message=reply.message,
            cost_micros=reply.cost_micros,
            _rate=self._rate,
        )

    def _rate(self, call_id: str, score: float) -> None:
        self.record_quality(score, call_id=call_id)


class Broker(Caller):
    """Routes calls over a pool of models, from blocking code. A context manager.

    It may be made before a fork and used after it: thread, loop and connections begin with
    the first call in a process.
    """

    def __init__(self, registry: Any = None, **kwargs: Any) -> None:
        """See AsyncBroker, whose arguments these are."""
        self._broker = AsyncBroker(registry, **kwargs)
        super().__init__(self._broker, LoopThread(self._broker.aclose))

    def for_scope(self, scope: str) -> Caller:
        """A caller that pays with the keys of ``scope`` and stamps its rows with it."""
        return Caller(self._broker.for_scope(scope), self._loop)

    @property
    def asynchronous(self) -> AsyncBroker:
        """The broker behind this one, for code that ``run`` runs: one pool, one set of
        connections for both."""
        return self._broker

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The value of a coroutine, which runs on the broker's event loop."""
        return self._loop.run(work)

    def disable_llm(self, name: str) -> None:
        """Take a model out of the pool until ``enable_llm``."""
        self._broker.disable_llm(name)

    def enable_llm(self, name: str) -> None:
        """Put a disabled model back."""
        self._broker.enable_llm(name)

    def close(self) -> None:
        """Finish what is still being journaled, close all connections, end the thread."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class DirectClient:
    """Blocking AsyncDirectClient."""

    def __init__(self, client: AsyncDirectClient, loop: LoopThread) -> None:
        self._client = client
        self._loop = loop

    def ask(self, prompt: str, **kwargs: Any) -> DirectResult:
        """``chat`` with one user message."""
        return self._loop.run(self._client.ask(prompt, **kwargs))

    def chat(
        self,
        messages: list[Message],
        *,
        tools: list[ToolSchema] | None = None,
        timeout: float | None = None,
        params: Mapping[str, object] | None = None,
    ) -> DirectResult:
        """See AsyncDirectClient.chat."""
        work = self._client.chat(messages, tools=tools, timeout=timeout, params=params)
        return self._loop.run(work)

    def stream(self, prompt: str | None = None, **kwargs: Any) -> Iterator[str]:
        """See AsyncDirectClient.stream."""
        pieces = self._client.stream(prompt, **kwargs)
        try:
            while (piece := self._loop.run(anext_or_none(pieces))) is not None:
                yield piece
        finally:
            self._loop.run(_close(pieces))


class Stream:
    """Blocking AsyncStream: iterates over text."""

    def __init__(self, stream: AsyncStream, loop: LoopThread) -> None:
        self._stream = stream
        self._loop = loop

    @property
    def llm_name(self) -> str | None:
        """The model that answers, once it has begun."""
        return self._stream.llm_name

    @property
    def call_id(self) -> str | None:
        """The journal's id of this call, once the model has begun to answer."""
        return self._stream.call_id

    @property
    def operation(self) -> str | None:
        """The caller's name for the task."""
        return self._stream.operation

    @property
    def completion(self) -> Completion | None:
        """The whole answer, once it has ended."""
        return self._stream.completion

    @property
    def usage(self) -> Usage | None:
        """What the answer used, once it has ended."""
        return self._stream.usage

    def deltas(self) -> Iterator[Delta]:
        """All pieces: text, reasoning and tool calls."""
        while (delta := self._loop.run(self._stream.next_delta())) is not None:
            yield delta

    def __iter__(self) -> Iterator[str]:
        return (delta.text for delta in self.deltas() if delta.kind == "text")

    def record_quality(self, score: float) -> None:
        """Rate this reply."""
        self._loop.run(self._stream.record_quality(score))

    def close(self) -> None:
        """Stop the provider, and free the model's slot."""
        self._loop.run(self._stream.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def _checked(client: AsyncDirectClient) -> None:
    await client


async def anext_or_none(pieces: Any) -> str | None:
    """The next piece of an async iterator, or None at its end."""
    piece: str | None = await anext(pieces, None)
    return piece


async def _close(pieces: Any) -> None:
    await pieces.aclose()
