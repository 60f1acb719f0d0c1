"""A prompt function: a template and how it is sent, with a face that models can call."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from llmbroker.prompts.naming import wire_name
from llmbroker.prompts.template import PromptTemplate
from llmbroker.prompts.variables import Declared
from llmbroker.tools.context import ToolContext
from llmbroker.tools.function import Effect, Function


@dataclass(frozen=True, slots=True)
class Prompt:
    """``tools`` are the plugins and functions that the model may call while it answers.
    ``effect`` is as declared.
    """

    plugin_name: str
    name: str
    template: PromptTemplate
    variables: Declared
    tools: tuple[str, ...] = ()
    chat_options: Mapping[str, Any] = field(default_factory=dict)
    effect: Effect | None = None

    @property
    def full_name(self) -> str:
        """As templates and programs call it."""
        return f"{self.plugin_name}.{self.name}"


Run = Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]]


def prompt_function(prompt: Prompt, run: Run, *, description: str | None) -> Function[..., Any]:
    """The Function whose value is what ``run`` makes of variables and context.

    A prompt that calls nothing is ``pure``; of another nothing is known unless it is declared.
    """
    is_closed = not prompt.template.calls and not prompt.tools
    return Function(
        _callable(prompt.variables, run),
        name=wire_name(prompt.plugin_name, prompt.name),
        description=description or "",
        effect=prompt.effect or ("pure" if is_closed else "once"),
        parameters=prompt.variables.schema,
    )


def _callable(variables: Declared, run: Run) -> Callable[..., Any]:
    """A coroutine function whose signature names the variables, and asks for the context."""
    context_name = "tool_context"
    while context_name in {each.name for each in variables.signature} | _properties(variables):
        context_name += "_"

    async def answer(**given: Any) -> Any:
        context = given.pop(context_name)
        return await run(given, context)

    context = inspect.Parameter(
        context_name, inspect.Parameter.KEYWORD_ONLY, annotation=ToolContext
    )
    parameters = [context, *variables.signature]
    answer.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    answer.__annotations__ = {each.name: each.annotation for each in parameters}
    return answer


def _properties(variables: Declared) -> set[str]:
    return set(variables.schema["properties"]) if variables.schema else set()
