"""Running one tool call: whatever happens, the model gets one text that is not blank."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping

from llmbroker.text import clip, storable
from llmbroker.tools.loop import ToolCall

Dispatch = Mapping[str, Callable[..., object]]

MAX_RESULT_CHARS = 100_000
"""A longer result is cut, with a note of its size: it would be sent again with every later step."""

_TEMPLATE_DEBRIS = re.compile(r"<\|.*$", re.DOTALL)


def execute(call: ToolCall, dispatch: Dispatch) -> str:
    """Run ``call``; returns the text for the model. A tool's exception never leaves."""
    function = find(call.name, dispatch)
    if function is None:
        return unknown(call.name, dispatch)
    if call.arguments is None:
        return failure(call.name, call.problem or "the arguments cannot be read")
    try:
        return as_text(function(**call.arguments))
    except Exception as error:  # noqa: BLE001 - the model is told, and may try again
        return failure(call.name, describe(error))


async def aexecute(call: ToolCall, dispatch: Dispatch) -> str:
    """``execute`` for a dispatch that may hold coroutine functions."""
    function = find(call.name, dispatch)
    if function is None:
        return unknown(call.name, dispatch)
    if call.arguments is None:
        return failure(call.name, call.problem or "the arguments cannot be read")
    try:
        value = function(**call.arguments)
        return as_text(await value if inspect.isawaitable(value) else value)
    except Exception as error:  # noqa: BLE001 - the model is told, and may try again
        return failure(call.name, describe(error))


def find(name: str, dispatch: Dispatch) -> Callable[..., object] | None:
    """The function of that name, forgiving only what chat templates glue on to a name."""
    if name in dispatch:
        return dispatch[name]
    cleaned = _TEMPLATE_DEBRIS.sub("", name).strip().removeprefix("functions.")
    return dispatch.get(cleaned)


def unknown(name: str, dispatch: Dispatch) -> str:
    """What the model is told when there is no such tool."""
    known = ", ".join(sorted(dispatch)) or "none"
    return f"Unknown tool {clip(storable(name), 64)}. Available tools: {known}"


def failure(name: str, problem: str) -> str:
    """What the model is told when a tool did not work."""
    return f"Tool {name} failed: {problem}"


def describe(error: BaseException) -> str:
    """The error in words; its type where it has none."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not break the loop
        text = ""
    return capped(storable(text or type(error).__name__))


def as_text(value: object) -> str:
    """``str(value)``, storable, capped and never blank.

    >>> as_text(""), as_text(None), as_text(21.5)
    ('(empty result)', 'None', '21.5')
    """
    text = capped(storable(str(value)))
    return text if text.strip() else "(empty result)"


def capped(text: str) -> str:
    """At most MAX_RESULT_CHARS characters, with a note of how long it was."""
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n[cut: {len(text)} characters in all]"
