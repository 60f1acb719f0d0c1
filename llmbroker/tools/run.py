"""``run_tool_loop``: drive any ``chat`` until the model answers without asking for a tool."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from llmbroker.models import Message, ToolSchema
from llmbroker.tools.execution import Dispatch, aexecute, execute
from llmbroker.tools.loop import ToolLoop, ToolReply

ReplyT_co = TypeVar("ReplyT_co", covariant=True)
ReplyT = TypeVar("ReplyT", bound=ToolReply)


class Chats(Protocol[ReplyT_co]):
    """Anything with ``chat(messages, tools=…)``: a broker, a scoped caller, a direct client."""

    def chat(self, messages: list[Message], *, tools: list[ToolSchema] | None = None) -> ReplyT_co:
        """One call of a model."""
        ...


def run_tool_loop(
    caller: Chats[ReplyT],
    messages: Sequence[Message],
    *,
    tools: Sequence[ToolSchema] | None = None,
    dispatch: Dispatch | None = None,
    max_steps: int = 8,
    **chat_kwargs: Any,
) -> ReplyT:
    """Call the model, run the tools that it asks for, and again, until it only answers.

    Returns the last reply; its ``usage`` is that of the last call alone. ``chat_kwargs`` go
    to every ``chat``. Raises ToolLoopLimitError when ``max_steps`` calls were not enough, and
    whatever ``chat`` raises.
    """
    loop = ToolLoop(messages, tools=tools, max_steps=max_steps)
    functions: Dispatch = dispatch or {}
    while not loop.exhausted:
        reply: ReplyT = _chat(caller, loop, chat_kwargs)
        for call in loop.receive(reply):
            loop.record(call, execute(call, functions))
        if loop.done:
            return reply
    raise loop.limit_error()


async def arun_tool_loop(
    caller: Chats[Awaitable[ReplyT]],
    messages: Sequence[Message],
    *,
    tools: Sequence[ToolSchema] | None = None,
    dispatch: Dispatch | None = None,
    max_steps: int = 8,
    **chat_kwargs: Any,
) -> ReplyT:
    """``run_tool_loop`` over an async ``chat``; tools may be plain or coroutine functions.

    The calls of one turn run at the same time: coroutine functions as tasks, plain ones in
    threads, so that a slow tool does not hold up the event loop.
    """
    loop = ToolLoop(messages, tools=tools, max_steps=max_steps)
    functions: Dispatch = dispatch or {}
    while not loop.exhausted:
        reply: ReplyT = await _chat(caller, loop, chat_kwargs)
        calls = loop.receive(reply)
        results = await asyncio.gather(*(_run(call, functions) for call in calls))
        for call, result in zip(calls, results, strict=True):
            loop.record(call, result)
        if loop.done:
            return reply
    raise loop.limit_error()


def _chat(caller: Chats[Any], loop: ToolLoop, kwargs: Mapping[str, Any]) -> Any:
    # A copy: whoever keeps the list that chat() was given must not see later turns in it.
    return caller.chat(list(loop.messages), tools=loop.tools, **kwargs)


async def _run(call: Any, dispatch: Dispatch) -> str:
    function = dispatch.get(call.name)
    if function is None or inspect.iscoroutinefunction(function):
        return await aexecute(call, dispatch)
    return await asyncio.to_thread(execute, call, dispatch)


__all__ = ["Chats", "arun_tool_loop", "run_tool_loop"]
