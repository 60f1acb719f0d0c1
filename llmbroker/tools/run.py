"""``run_tool_loop``: drive any ``chat`` until the model answers without asking for a tool."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar, cast

from llmbroker.models import Message, ToolSchema
from llmbroker.tools.calls import ToolReply
from llmbroker.tools.capping import MAX_RESULT_CHARS
from llmbroker.tools.choice import ToolChoice
from llmbroker.tools.limits import CostOf
from llmbroker.tools.loop import ToolLoop
from llmbroker.tools.steps import ToolStep
from llmbroker.tools.toolbox import AnyTool, Dispatch, Toolbox
from llmbroker.tools.turn import MAX_TOOL_CONCURRENCY, Runner

ReplyT_co = TypeVar("ReplyT_co", covariant=True)
ReplyT = TypeVar("ReplyT", bound=ToolReply)


class Chats(Protocol[ReplyT_co]):
    """Anything with ``chat(messages, tools=…)``: a broker, a scoped caller, a direct client."""

    def chat(self, messages: list[Message], *, tools: list[ToolSchema] | None = None) -> ReplyT_co:
        """One call of a model."""
        ...


def run_tool_loop(
    caller: Chats[ReplyT],
    messages: Sequence[Message] | ToolLoop,
    *,
    tools: Sequence[AnyTool] | None = None,
    dispatch: Dispatch | None = None,
    max_steps: int = 8,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    cost_of: CostOf | None = None,
    deadline: datetime | timedelta | None = None,
    max_repeats: int | None = None,
    tool_choice: ToolChoice | None = None,
    final_answer: bool = False,
    on_step: Callable[[ToolStep], object] | None = None,
    max_tool_concurrency: int = MAX_TOOL_CONCURRENCY,
    tool_timeout: float | None = None,
    max_result_chars: int = MAX_RESULT_CHARS,
    **chat_kwargs: Any,
) -> ReplyT:
    """Call the model, run the tools that it asks for, and again, until it only answers.

    ``tools`` may mix schemas written by hand, whose functions ``dispatch`` holds, with callables
    and Functions, which bring their own. The calls of one turn run at the same time. ``on_step``
    is told of every step. ``messages`` may be a ToolLoop, which is driven on from where it
    stands and has its own limits.

    Returns the last reply; its ``usage`` is that of the last call alone. ``chat_kwargs`` go to
    every ``chat``. Raises ToolLoopLimitError when a limit was reached first, and whatever
    ``chat`` and ``on_step`` raise.
    """
    runner = _runner_of(
        caller,
        messages,
        Toolbox(tools, dispatch),
        max_tool_concurrency=max_tool_concurrency,
        tool_timeout=tool_timeout,
        max_result_chars=max_result_chars,
        max_steps=max_steps,
        max_tokens=max_tokens,
        max_cost=max_cost,
        cost_of=cost_of,
        deadline=deadline,
        max_repeats=max_repeats,
        tool_choice=tool_choice,
        final_answer=final_answer,
    )
    loop = runner.loop
    if loop.pending:
        runner.run(loop.pending)
    while not (loop.done or loop.exhausted):
        reply = _chat(caller, loop, chat_kwargs)
        calls = loop.receive(reply, max_completion_tokens=_completion_cap(chat_kwargs))
        runner.run(calls)
        if on_step is not None and loop.last_step is not None:
            on_step(loop.last_step)
    if loop.done:
        return cast("ReplyT", loop.reply)
    raise loop.limit_error()


async def arun_tool_loop(
    caller: Chats[Awaitable[ReplyT]],
    messages: Sequence[Message] | ToolLoop,
    *,
    tools: Sequence[AnyTool] | None = None,
    dispatch: Dispatch | None = None,
    max_steps: int = 8,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    cost_of: CostOf | None = None,
    deadline: datetime | timedelta | None = None,
    max_repeats: int | None = None,
    tool_choice: ToolChoice | None = None,
    final_answer: bool = False,
    on_step: Callable[[ToolStep], object] | None = None,
    max_tool_concurrency: int = MAX_TOOL_CONCURRENCY,
    tool_timeout: float | None = None,
    max_result_chars: int = MAX_RESULT_CHARS,
    **chat_kwargs: Any,
) -> ReplyT:
    """``run_tool_loop`` over an async ``chat``; tools may be plain or coroutine functions.

    Coroutine functions run as tasks, plain ones in threads, so that a slow tool does not hold
    up the event loop. ``on_step`` may be a coroutine function. When it is cancelled, every call
    of the turn gets a result that says so; a ToolLoop passed as ``messages`` shows them.
    """
    runner = _runner_of(
        caller,
        messages,
        Toolbox(tools, dispatch),
        max_tool_concurrency=max_tool_concurrency,
        tool_timeout=tool_timeout,
        max_result_chars=max_result_chars,
        max_steps=max_steps,
        max_tokens=max_tokens,
        max_cost=max_cost,
        cost_of=cost_of,
        deadline=deadline,
        max_repeats=max_repeats,
        tool_choice=tool_choice,
        final_answer=final_answer,
    )
    loop = runner.loop
    if loop.pending:
        await runner.arun(loop.pending)
    while not (loop.done or loop.exhausted):
        reply = await _chat(caller, loop, chat_kwargs)
        calls = loop.receive(reply, max_completion_tokens=_completion_cap(chat_kwargs))
        await runner.arun(calls)
        if on_step is not None and loop.last_step is not None:
            told = on_step(loop.last_step)
            if inspect.isawaitable(told):
                await told
    if loop.done:
        return cast("ReplyT", loop.reply)
    raise loop.limit_error()


def _runner_of(
    caller: object,
    messages: Sequence[Message] | ToolLoop,
    toolbox: Toolbox,
    *,
    max_tool_concurrency: int,
    tool_timeout: float | None,
    max_result_chars: int,
    **limits: Any,
) -> Runner:
    """The tools of a new loop with ``limits``, or of the one that ``messages`` is."""
    if isinstance(messages, ToolLoop):
        loop = messages
        if loop.tools is None:
            loop.tools = toolbox.schemas
    else:
        loop = ToolLoop(messages, tools=toolbox.schemas, **limits)
    return Runner(
        loop=loop,
        toolbox=toolbox,
        scope=_scope_of(caller),
        max_concurrency=max_tool_concurrency,
        timeout=tool_timeout,
        max_result_chars=max_result_chars,
    )


def _chat(caller: Chats[Any], loop: ToolLoop, kwargs: Mapping[str, Any]) -> Any:
    choice = loop.tool_choice
    if choice is not None:
        kwargs = {**kwargs, "params": {**(kwargs.get("params") or {}), "tool_choice": choice}}
    # A copy: whoever keeps the list that chat() was given must not see later turns in it.
    return caller.chat(list(loop.messages), tools=loop.tools, **kwargs)


def _completion_cap(kwargs: Mapping[str, Any]) -> int | None:
    params = kwargs.get("params") or {}
    cap = params.get("max_completion_tokens", params.get("max_tokens"))
    return cap if isinstance(cap, int) else None


def _scope_of(caller: object) -> str | None:
    scope = getattr(caller, "scope", None)
    return scope if isinstance(scope, str) else None


__all__ = ["Chats", "arun_tool_loop", "run_tool_loop"]
