"""The calls of one template: what each is given, and running those that need no event loop."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from llmbroker.errors import LLMBrokerError, LLMRequestError
from llmbroker.prompts.errors import TemplateRenderError
from llmbroker.prompts.functions import Functions, KernelFunction
from llmbroker.prompts.nodes import Argument, Call, Variable
from llmbroker.prompts.prompt import Prompt
from llmbroker.tools.context import ToolContext
from llmbroker.tools.execution import describe
from llmbroker.tools.workers import run_in_thread

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call with all that it needs."""

    call: Call
    function: KernelFunction
    arguments: Given
    context: ToolContext

    @property
    def is_plain(self) -> bool:
        """Whether it is a Python function that blocks for as long as it likes."""
        function = self.function
        return function.prompt is None and not (
            function.function.is_async or function.function.timeout
        )


def prepare(
    prompt: Prompt, functions: Functions, variables: Given, context: ToolContext
) -> list[Prepared]:
    """The calls of a prompt's template. Raises TemplateRenderError before any of them has run."""
    prepared = []
    for number, call in enumerate(prompt.template.calls):
        with located(call):
            function = functions.find(call.name, near=prompt.plugin_name)
            arguments = _arguments(call, function, variables)
        its_own = _context_of(context, f"{prompt.full_name}:{number}")
        prepared.append(Prepared(call, function, arguments, its_own))
    return prepared


async def in_one_thread(calls: Sequence[Prepared]) -> list[Any]:
    """The values of plain functions, one after another; none begins after a cancellation."""
    cancelled = threading.Event()
    try:
        values = await run_in_thread(_values, calls, cancelled)
    finally:
        cancelled.set()
    for number, value in enumerate(values):
        if inspect.isawaitable(value):  # as a lambda's may be, which calls a coroutine function
            with located(calls[number].call):
                values[number] = await value
    return values


@contextmanager
def located(call: Call) -> Iterator[None]:
    """What goes wrong within it is told with the call's place.

    Errors of the service come through, for whoever would try again.
    """
    try:
        yield
    except (TemplateRenderError, LLMRequestError, LLMBrokerError):
        raise
    except (Exception, SystemExit) as error:
        raise TemplateRenderError(f"{call}: {describe(error)}", function=call.name) from error


def _values(calls: Sequence[Prepared], cancelled: threading.Event) -> list[Any]:
    values = []
    for each in calls:
        if cancelled.is_set():
            break
        with located(each.call):
            values.append(each.function.function.invoke(each.arguments, each.context))
    return values


def _arguments(call: Call, function: KernelFunction, variables: Given) -> Given:
    """The variables that the function has parameters for, and what is written in the call."""
    names = list(function.parameters)
    takes_all = function.prompt is not None and not function.prompt.variables.is_checked
    arguments = {name: value for name, value in variables.items() if takes_all or name in names}
    required = function.function.parameters.get("required", ())
    for name, value in _written(call, names).items():
        if not isinstance(value, Variable):
            arguments[name] = value
        elif value.name in variables or name in required:
            arguments[name] = variables.get(value.name)
        else:
            arguments.pop(name, None)  # the parameter's default stands for what has no value
    return arguments


def _written(call: Call, names: Sequence[str]) -> Mapping[str, Argument]:
    if call.first is None:
        return call.named
    if not names:
        raise ValueError("the function takes no arguments")
    if names[0] in call.named:
        raise ValueError(f"{names[0]} is given twice")
    return {names[0]: call.first, **call.named}


def _context_of(context: ToolContext, place: str) -> ToolContext:
    """The context of one call: what is to happen once must not share its key with another."""
    key = context.idempotency_key
    return replace(context, idempotency_key=f"{key}:{place}") if key else context
