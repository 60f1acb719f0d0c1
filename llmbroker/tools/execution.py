"""Running one tool call: whatever happens, the model gets one text that is not blank."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

from llmbroker.text import storable
from llmbroker.tools.calls import ToolCall
from llmbroker.tools.capping import MAX_RESULT_CHARS, capped
from llmbroker.tools.context import ToolContext
from llmbroker.tools.outcomes import (
    BadArgumentsError,
    ModelRetry,
    ToolFailed,
    ToolStatus,
    failure,
)
from llmbroker.tools.steps import ToolResult
from llmbroker.tools.toolbox import Dispatch, Runnable, Toolbox, find, unknown
from llmbroker.tools.workers import run_coroutine, run_in_thread

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}")
_LEFT = "the tool called sys.exit()"


def execute(call: ToolCall, dispatch: Dispatch) -> str:
    """Run ``call``; returns the text for the model. A tool's exception never leaves."""
    return run_here(call, Toolbox(dispatch=dispatch), ToolContext()).text


def run_here(
    call: ToolCall, toolbox: Toolbox, context: ToolContext, limit: int = MAX_RESULT_CHARS
) -> ToolResult:
    """Run ``call`` in this thread, for as long as it takes."""
    tool = toolbox.find(call.name)
    if tool is None or call.arguments is None:
        return refusal(call, toolbox)
    return outcome(call, lambda: _finished(tool.invoke(call.arguments or {}, context)), limit)


async def value_of(tool: Runnable, call: ToolCall, context: ToolContext) -> Any:
    """What the tool gives: a plain function runs in a thread, a coroutine function here."""
    arguments = call.arguments or {}
    try:
        if tool.is_async:
            return await tool.invoke(arguments, context)
        value = await run_in_thread(tool.invoke, arguments, context, function=tool.function)
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:  # asyncio would end the event loop over it
        raise ToolFailed(_LEFT) from error


async def awaited(value: Awaitable[Any]) -> Any:
    """What a plain function's awaitable gives."""
    try:
        return await value
    except SystemExit as error:
        raise ToolFailed(_LEFT) from error


def outcome(
    call: ToolCall, value: Callable[[], object], limit: int = MAX_RESULT_CHARS
) -> ToolResult:
    """The result that ``value()`` makes, or the exception that it raises."""
    try:
        return ToolResult(call, as_text(value(), limit))
    except BadArgumentsError as error:
        return _failure(call, describe(error, limit), ToolStatus.INVALID_ARGUMENTS)
    except ModelRetry as error:
        text = f"{describe(error, limit)} Correct the call and try again."
        return _failure(call, text, ToolStatus.RETRY)
    except ToolFailed as error:
        return _failure(call, f"{describe(error, limit)} Trying again will not help.")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the model is told, and may try again
        return _failure(call, describe(error, limit))


def refusal(call: ToolCall, toolbox: Toolbox) -> ToolResult:
    """The result of a call that cannot be run."""
    if toolbox.find(call.name) is None:
        text = unknown(call.name, toolbox.names)
        return ToolResult(call, text, ToolStatus.UNKNOWN_TOOL)
    problem = call.problem or "the arguments cannot be read"
    return _failure(call, problem, ToolStatus.INVALID_ARGUMENTS)


def describe(error: BaseException, limit: int = MAX_RESULT_CHARS) -> str:
    """The error in words, without addresses in memory; its type where it has none."""
    try:
        text = _ADDRESS.sub("", str(error))
    except Exception:  # noqa: BLE001 - a broken __str__ must not break the loop
        text = ""
    return capped(storable(text if text.strip() else type(error).__name__), limit)


def as_text(value: object, limit: int = MAX_RESULT_CHARS) -> str:
    """``str(value)``, storable, capped and never blank; without addresses in memory.

    >>> as_text(""), as_text(None), as_text(21.5), as_text(object())
    ('(empty result)', 'None', '21.5', '<object object>')
    """
    text = value if isinstance(value, str) else _ADDRESS.sub("", str(value))
    text = capped(storable(text), limit)
    return text if text.strip() else "(empty result)"


def _failure(call: ToolCall, problem: str, status: ToolStatus = ToolStatus.FAILED) -> ToolResult:
    return ToolResult(call, failure(call.name, problem), status)


def _finished(value: object) -> object:
    return run_coroutine(value) if inspect.iscoroutine(value) else value


__all__ = [
    "MAX_RESULT_CHARS",
    "Dispatch",
    "as_text",
    "awaited",
    "capped",
    "describe",
    "execute",
    "failure",
    "find",
    "outcome",
    "refusal",
    "run_here",
    "unknown",
    "value_of",
]
