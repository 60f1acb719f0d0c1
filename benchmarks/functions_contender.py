"""Measures one library in its own environment; prints JSON. Run by functions.py.

CPU is the whole process's, user and system, all threads.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

FUNCTIONS = 100
WARM_UP = 20
LOOPS = 200
CALLS = 8
SLEEP = 0.05
QUESTION = "Look eight times."
ANSWER = "Looked."

Loop = Callable[[], Awaitable[str]]


def declared(number: int) -> Callable[..., str]:
    """A function as people declare them; each a fresh one."""

    def search(query: str, limit: int = 10, kind: str | None = None) -> str:
        """Search the archive.

        Args:
            query: What to look for.
            limit: How many results.
            kind: Which kind of document.
        """
        return f"{query}{limit}{kind}{number}"

    search.__name__ = search.__qualname__ = f"search_{number}"
    return search


async def look(number: int) -> str:
    """Look at one thing."""
    return f"saw {number}"


def look_slowly(number: int) -> str:
    """Look at one thing."""
    time.sleep(SLEEP)
    return f"saw {number}"


class Ours:
    """llmbroker."""

    def schema(self, function: Callable[..., str]) -> object:
        import llmbroker

        return llmbroker.Function.of(function).schema

    async def loop(self, base_url: str, tool: Callable[..., Any]) -> Loop:
        import llmbroker

        model = llmbroker.LLMConfig("bench", base_url, "bench", "KEY")
        registry = llmbroker.InMemoryRegistry([model])
        broker = llmbroker.AsyncBroker(registry, secrets={"KEY": "none"})
        function = llmbroker.Function.of(tool)
        messages = [{"role": "user", "content": QUESTION}]

        async def run() -> str:
            reply = await llmbroker.arun_tool_loop(broker, messages, tools=[function])
            return reply.text

        return run


class SemanticKernel:
    """Semantic Kernel."""

    def schema(self, function: Callable[..., str]) -> object:
        from semantic_kernel.connectors.ai.function_calling_utils import (
            kernel_function_metadata_to_function_call_format as as_sent,
        )
        from semantic_kernel.functions import KernelFunctionFromMethod, kernel_function

        made = KernelFunctionFromMethod(method=kernel_function(function), plugin_name="p")
        return as_sent(made.metadata)

    async def loop(self, base_url: str, tool: Callable[..., Any]) -> Loop:
        from openai import AsyncOpenAI
        from semantic_kernel import Kernel
        from semantic_kernel.connectors.ai import FunctionChoiceBehavior
        from semantic_kernel.connectors.ai.open_ai import (
            OpenAIChatCompletion,
            OpenAIChatPromptExecutionSettings,
        )
        from semantic_kernel.contents import ChatHistory
        from semantic_kernel.functions import kernel_function

        client = AsyncOpenAI(base_url=base_url, api_key="none")
        service = OpenAIChatCompletion(ai_model_id="bench", async_client=client)
        kernel = Kernel()
        kernel.add_function("p", kernel_function(tool))
        settings = OpenAIChatPromptExecutionSettings(
            function_choice_behavior=FunctionChoiceBehavior.Auto()
        )

        async def run() -> str:
            history = ChatHistory()
            history.add_user_message(QUESTION)
            message = await service.get_chat_message_content(history, settings, kernel=kernel)
            return str(message)

        return run


class PydanticAI:
    """Pydantic AI."""

    def schema(self, function: Callable[..., str]) -> object:
        from pydantic_ai import Tool

        return Tool(function).tool_def

    async def loop(self, base_url: str, tool: Callable[..., Any]) -> Loop:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=base_url, api_key="none")
        agent = Agent(OpenAIChatModel("bench", provider=provider), tools=[tool])

        async def run() -> str:
            return (await agent.run(QUESTION)).output

        return run


LIBRARIES = {"llmbroker": Ours, "Semantic Kernel": SemanticKernel, "Pydantic AI": PydanticAI}


def main() -> None:
    """Measure what the command line names: schemas, or loop with a base URL."""
    library = LIBRARIES[sys.argv[1]]()
    measured = (
        _schemas(library) if sys.argv[2] == "schemas" else asyncio.run(_loops(library, sys.argv[3]))
    )
    print(json.dumps(measured))


def _schemas(library: Any) -> dict[str, float]:
    library.schema(declared(0))  # imports
    functions = [declared(number) for number in range(FUNCTIONS)]
    began = _cpu()
    for function in functions:
        library.schema(function)
    return {"schemas_ms": (_cpu() - began) * 1000}


async def _loops(library: Any, base_url: str) -> dict[str, float]:
    run = await library.loop(base_url, look)
    for _ in range(WARM_UP):
        _check(await run())
    began = _cpu()
    for _ in range(LOOPS):
        _check(await run())
    cpu_ms = (_cpu() - began) / LOOPS * 1000
    slow = await library.loop(base_url, look_slowly)
    _check(await slow())
    waited = time.perf_counter()
    _check(await slow())
    return {"loop_cpu_ms": cpu_ms, "slow_wall_ms": (time.perf_counter() - waited) * 1000}


def _check(text: str) -> None:
    """A contender that gives up early would be cheap."""
    if text != ANSWER:
        raise SystemExit(f"the loop did not reach the answer: {text!r}")


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
