"""A dry run: which functions a model would call to reach a goal, as data."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from llmbroker.errors import ToolLoopLimitError
from llmbroker.models import Message, Usage
from llmbroker.prompts.errors import UnknownFunctionError
from llmbroker.prompts.functions import Functions, KernelFunction
from llmbroker.prompts.invocation import Invoker
from llmbroker.tools.function import Function
from llmbroker.tools.loop import ToolLoop
from llmbroker.tools.outcomes import ToolStatus
from llmbroker.tools.run import arun_tool_loop
from llmbroker.tools.steps import ToolStep
from llmbroker.tools.toolbox import find

NOT_RUN = "(dry run: not called; go on as if it had worked)"

INSTRUCTIONS = (
    "This is a dry run. Call the functions that you need to reach the goal, in the order in"
    " which you need them. Functions that would change something are not called really, and"
    " their result says so."
)

_NOT_CALLED = {ToolStatus.INVALID_ARGUMENTS, ToolStatus.UNKNOWN_TOOL}


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One call that the model asked for. ``turn`` counts its answers from 1: calls of one turn
    do not wait for each other. ``ran`` tells a real ``result`` from a dry one.
    """

    turn: int
    function: str
    arguments: dict[str, Any] | None
    ran: bool
    result: str


@dataclass(frozen=True, slots=True)
class Plan:
    """``answer`` is what the model said in the end, None if it still wanted to go on."""

    goal: str
    steps: tuple[PlanStep, ...]
    answer: str | None
    usage: Usage | None


async def make_plan(invoker: Invoker, goal: str, names: tuple[str, ...], *, max_steps: int) -> Plan:
    """Let the model go for ``goal``; only functions that are ``pure`` are really called."""
    functions = invoker.functions
    chosen = {each.function.name: each for each in functions.select(names)}
    pure = {name for name, each in chosen.items() if _is_pure(each, functions)}
    steps: list[PlanStep] = []

    def note(step: ToolStep) -> None:
        steps.extend(_steps(step, chosen, pure))

    loop = ToolLoop(_messages(goal), max_steps=max_steps)
    tools = [each.function if name in pure else _dry(each) for name, each in chosen.items()]
    service = invoker.chosen_service()
    with suppress(ToolLoopLimitError):  # then the plan is as long as it became
        await arun_tool_loop(service, loop, tools=tools, on_step=note, **invoker.chat_options)
    answer = loop.reply.text if loop.done else None
    return Plan(goal, tuple(steps), answer, loop.run_usage)


def _is_pure(function: KernelFunction, functions: Functions) -> bool:
    """Whether calling it changes nothing: for a prompt, whatever it may call as well."""
    reached = {function.full_name}
    waiting = [function]
    while waiting:
        each = waiting.pop()
        called = _called(each, functions)
        if called is None:
            return False
        waiting += [more for more in called if more.full_name not in reached]
        reached |= {more.full_name for more in called}
    return True


def _called(function: KernelFunction, functions: Functions) -> list[KernelFunction] | None:
    """What it may call; None for one that is not pure itself, or calls nobody knows what."""
    prompt = function.prompt
    if prompt is None:
        return [] if function.function.effect == "pure" else None
    if prompt.effect not in ("pure", None):
        return None
    calls = [each.name for each in prompt.template.calls]
    try:
        called = [functions.find(each, near=prompt.plugin_name) for each in calls]
        return called + (functions.select(prompt.tools) if prompt.tools else [])
    except UnknownFunctionError:
        return None


def _dry(function: KernelFunction) -> Function[..., Any]:
    """Takes the same arguments, and only says that it was not called."""

    def not_run(**arguments: Any) -> str:  # noqa: ARG001 - they are checked, and that is all
        return NOT_RUN

    original = function.function
    return Function(
        not_run,
        name=original.name,
        description=original.description,
        parameters=original.parameters,
        strict=original.strict,
    )


def _messages(goal: str) -> list[Message]:
    return [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": goal},
    ]


def _steps(
    step: ToolStep, functions: dict[str, KernelFunction], pure: set[str]
) -> Iterable[PlanStep]:
    for result in step.results:
        known = find(result.call.name, functions)
        yield PlanStep(
            step.number,
            known.full_name if known else result.call.name,
            result.call.arguments,
            known is not None and known.function.name in pure and result.status not in _NOT_CALLED,
            result.text,
        )
