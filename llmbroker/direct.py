"""One named model: no pool, no failover, no journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from uuid_utils import uuid7

from llmbroker.errors import MissingKeyError, StreamInterruptedError
from llmbroker.exchange import Exchange
from llmbroker.models import ApiKey, LLMConfig, Message, ToolSchema
from llmbroker.outgoing import Outgoing
from llmbroker.ports import Gate
from llmbroker.reply import DirectResult
from llmbroker.routing.toll import Toll
from llmbroker.transport import Transport
from llmbroker.wire.completion import one_tool_call
from llmbroker.wire.failure import ExchangeError
from llmbroker.wire.params import answer_cap, asked
from llmbroker.wire.request import Request, UnsendableKeyError, build_request

Resolved = tuple[LLMConfig, ApiKey]

DEFAULT_TIMEOUT = 120.0
"""Seconds a direct call may take unless the caller says otherwise."""


class AsyncDirectClient:
    """Calls one model. May be awaited, to have a missing model or key reported at once."""

    def __init__(
        self,
        resolve: Callable[[], Awaitable[Resolved]],
        transport: Transport,
        *,
        scope: str | None = None,
        gate: Gate | None = None,
    ) -> None:
        self._resolve = resolve
        self._transport = transport
        self._scope = scope
        self._gate = gate

    def __await__(self) -> Generator[Any, None, AsyncDirectClient]:
        yield from self._resolve().__await__()
        return self

    async def ask(self, prompt: str, **kwargs: Any) -> DirectResult:
        """``chat`` with one user message."""
        return await self.chat([{"role": "user", "content": prompt}], **kwargs)

    async def chat(
        self,
        messages: list[Message],
        *,
        tools: list[ToolSchema] | None = None,
        timeout: float | None = None,
        params: Mapping[str, object] | None = None,
    ) -> DirectResult:
        """One whole reply within ``timeout`` seconds (120 unless given).

        ``params`` go into the request and win over the catalog's ``tool_params``. Raises
        LLMRequestError.
        """
        config, key = await self._resolve()
        exchange = Exchange(self._transport, config, key)
        try:
            async with self._toll(config, key, messages, tools, params) as toll:
                request = _request(config, key, messages, tools, toll.params, stream=False)
                sent = asked(toll.params, config.tool_params if tools else {})
                completion = await exchange.whole(
                    request, timeout=timeout or DEFAULT_TIMEOUT, max_tokens=answer_cap(sent)
                )
                await toll.answered(completion)
            if sent.get("parallel_tool_calls") is False:
                completion = one_tool_call(completion)
            return DirectResult.of(completion)
        except ExchangeError as error:
            failure = error.failure
        raise failure.to_error(config.name)

    async def stream(
        self,
        prompt: str | None = None,
        *,
        messages: list[Message] | None = None,
        timeout: float | None = None,
        params: Mapping[str, object] | None = None,
    ) -> AsyncIterator[str]:
        """The text of one reply as it arrives. Closing the iterator early cancels upstream.

        ``timeout`` bounds the first content; what breaks off after it raises
        StreamInterruptedError, all else LLMRequestError. Raises ValueError unless exactly one of
        ``prompt`` and ``messages`` is given.
        """
        if (prompt is None) == (messages is None):
            raise ValueError("pass exactly one of prompt and messages")
        asked = messages if messages is not None else [{"role": "user", "content": prompt}]
        config, key = await self._resolve()
        exchange, has_begun = Exchange(self._transport, config, key), False
        try:
            async with (
                self._toll(config, key, asked, None, params) as toll,
                AsyncExitStack() as connection,
            ):
                request = _request(config, key, asked, None, toll.params, stream=True)
                source = await exchange.open(request, connection, timeout=timeout)
                has_begun = True
                while delta := await source.next():
                    if delta.kind == "text":
                        yield delta.text
                await toll.answered(source.finish())
                return
        except ExchangeError as error:
            problem = error.failure.to_error(config.name)
        if has_begun:
            raise StreamInterruptedError(str(problem), llm_name=config.name)
        raise problem

    @asynccontextmanager
    async def _toll(
        self,
        config: LLMConfig,
        key: ApiKey,
        messages: list[Message],
        tools: list[ToolSchema] | None,
        params: Mapping[str, object] | None,
    ) -> AsyncIterator[Toll]:
        """A request's way through the gate, left however the request ends."""
        outgoing = Outgoing(str(uuid7()), self._scope, config, messages, tools, params, key.id)
        toll = Toll(self._gate, params)
        await toll.enter(lambda: outgoing)
        try:
            yield toll
        except ExchangeError as error:
            await toll.failed(error.failure.kind)
            raise
        except MissingKeyError:
            await toll.abandoned(sent=False)
            raise
        finally:
            await asyncio.shield(toll.abandoned())


def _request(
    config: LLMConfig,
    key: ApiKey,
    messages: list[Message],
    tools: list[ToolSchema] | None,
    params: Mapping[str, object] | None,
    *,
    stream: bool,
) -> Request:
    try:
        return build_request(config, key.value, messages, tools=tools, params=params, stream=stream)
    except UnsendableKeyError:
        message = f"the key stored for {config.api_key_ref} holds characters that no key has"
    raise MissingKeyError(message)
