"""The contenders: each opens what it needs and gives a function that runs one tool loop.

Imports are inside: the floor must not load an engine, and the two ``llmbroker`` packages, ours
and PyPI's, are never in one process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import conversation

Loop = Callable[[], Any]
AsyncLoop = Callable[[], Awaitable[Any]]
Dispatch = Mapping[str, Callable[..., object]]

_WHAT = {"messages": conversation.MESSAGES, "tools": conversation.TOOLS}


@asynccontextmanager
async def by_hand(base_url: str, _models: int) -> AsyncIterator[AsyncLoop]:
    """The floor: what someone writes who needs one model, one loop and nothing else."""
    import aiohttp
    import orjson

    url = f"{base_url}/chat/completions"
    headers = {
        "Authorization": f"Bearer {conversation.KEY}",
        "Content-Type": "application/json",
    }
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def loop() -> str:
            messages: list[dict] = list(conversation.MESSAGES)
            for _ in range(8):
                body = {
                    "model": conversation.MODEL,
                    "messages": messages,
                    "tools": conversation.TOOLS,
                }
                async with session.post(url, data=orjson.dumps(body)) as response:
                    response.raise_for_status()
                    answer = orjson.loads(await response.read())
                message = answer["choices"][0]["message"]
                if not message.get("tool_calls"):
                    return message["content"]
                messages.append(message)
                for call in message["tool_calls"]:
                    function = call["function"]
                    tool = conversation.PLAIN_TOOLS[function["name"]]
                    result = tool(**orjson.loads(function["arguments"]))
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            raise RuntimeError("the model never answered")

        yield loop


@asynccontextmanager
async def async_broker(
    base_url: str, models: int, *, dispatch: Dispatch = conversation.PLAIN_TOOLS
) -> AsyncIterator[AsyncLoop]:
    """``AsyncBroker``, ours or the peer's: the two are called alike."""
    import llmbroker

    async with llmbroker.AsyncBroker(_Models(base_url, models), **_arguments()) as opened:
        yield lambda: llmbroker.arun_tool_loop(opened, **_WHAT, dispatch=dispatch)


@contextmanager
def broker(base_url: str, models: int) -> Iterator[Loop]:
    """The blocking ``Broker``, ours or the peer's."""
    import llmbroker

    with llmbroker.Broker(_Models(base_url, models), **_arguments()) as opened:
        yield lambda: llmbroker.run_tool_loop(opened, **_WHAT, dispatch=conversation.PLAIN_TOOLS)


class _Models:
    """A registry of models at one server, for either package."""

    def __init__(self, base_url: str, models: int) -> None:
        from llmbroker import LLMConfig

        self._configs = [
            LLMConfig(
                name=f"bench-{number}",
                base_url=base_url,
                model=conversation.MODEL,
                api_key_ref=conversation.KEY_REF,
                weight=1 - number / models,
            )
            for number in range(models)
        ]

    async def load(self) -> list:
        return list(self._configs)


def _arguments() -> dict[str, Any]:
    """In-memory ports, and nothing that is fetched."""
    import inspect

    from llmbroker import AsyncBroker, DictSecrets, InMemoryStore

    arguments = {
        "secrets": DictSecrets({conversation.KEY_REF: conversation.KEY}),
        "store": InMemoryStore(),
        "sync": None,
    }
    if "sync_interval" in inspect.signature(AsyncBroker.__init__).parameters:
        arguments["sync_interval"] = None
    return arguments


ASYNC = {
    "by_hand": by_hand,
    "async_broker": async_broker,
    # Ours only: the peer takes plain functions.
    "async_broker_coroutine_tools": partial(async_broker, dispatch=conversation.COROUTINE_TOOLS),
}
SYNC = {"broker": broker}
