"""Kernel: prompt functions and native functions as one kind of thing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from llmbroker.models import ToolSchema
from llmbroker.prompts.functions import KernelFunction
from llmbroker.prompts.invocation import Invoker
from llmbroker.prompts.limits import DEFAULT_LIMITS, TemplateLimits
from llmbroker.prompts.naming import wire_name
from llmbroker.prompts.native import functions_of, name_of, native_function
from llmbroker.prompts.plan import Plan, make_plan
from llmbroker.prompts.prompt import Prompt
from llmbroker.prompts.results import FunctionResult
from llmbroker.prompts.segments import RenderedPrompt
from llmbroker.prompts.service import Service
from llmbroker.prompts.template import PromptTemplate, TemplateSource
from llmbroker.prompts.trail import run_blocking
from llmbroker.prompts.variables import Variables, declaration_of
from llmbroker.tools.function import Effect, Function

Result = TypeVar("Result")
Invocable = KernelFunction | str
Given = Mapping[str, Any] | None
"""Variables by name, for those whose names no keyword can have."""


class KernelTools(NamedTuple):
    """What ``run_tool_loop`` needs to offer functions to a model."""

    tools: list[ToolSchema]
    dispatch: dict[str, Function[..., Any]]


class Kernel:
    """Functions by plugin and name, over one service that answers prompts."""

    def __init__(
        self,
        service: Any = None,
        *,
        chat_options: Mapping[str, Any] | None = None,
        limits: TemplateLimits = DEFAULT_LIMITS,
    ) -> None:
        """``service`` is a broker, a scoped caller, a direct client: whatever has ``chat``,
        to which ``chat_options`` (``trace_id``, ``wait``, ``params`` …) always go."""
        self._invoker = Invoker(limits, dict(chat_options or {}))
        if service is not None:
            self.add_service(service)

    @property
    def functions(self) -> dict[str, KernelFunction]:
        """All functions, by ``plugin.function``."""
        return {each.full_name: each for each in self._invoker.functions}

    def add_service(self, service: Any, *, overwrite: bool = False) -> None:
        """Let ``service`` answer prompts. Raises ValueError if another one does already."""
        if self._invoker.service is not None and not overwrite:
            raise ValueError("this kernel has a service; overwrite=True replaces it")
        self._invoker.service = Service(service)

    def add_function(
        self,
        plugin_name: str,
        function: Callable[..., Any] | None = None,
        *,
        function_name: str | None = None,
        prompt: TemplateSource | PromptTemplate | None = None,
        description: str | None = None,
        effect: Effect | None = None,
        variables: Variables | None = None,
        tools: Sequence[str] = (),
        strict: bool = False,
        chat_options: Mapping[str, Any] | None = None,
    ) -> KernelFunction:
        """Add a native ``function``, or a ``prompt`` under a ``function_name``.

        The last four are a prompt's: ``variables`` declares its variables by type,
        PromptVariable or JSON Schema; then values are checked, converted and filled in.
        ``tools`` names plugins and functions that the model may call while it answers,
        ``strict`` is PromptTemplate's. A function of the same name is replaced.

        Raises TemplateSyntaxError and ValueError.
        """
        if (function is None) == (prompt is None):
            raise ValueError("pass exactly one of function and prompt")
        if function is not None:
            if variables is not None or tools or strict or chat_options:
                raise ValueError("variables, tools, strict and chat_options are for prompts only")
            name = function_name or name_of(function)
            options = {"description": description, "effect": effect}
            native = native_function(function, self, wire_name(plugin_name, name), options)
            return self._invoker.functions.add(KernelFunction(plugin_name, name, native))
        if function_name is None or prompt is None:
            raise ValueError("a prompt needs a function_name")
        template = self._template(prompt, strict=strict)
        made = Prompt(
            plugin_name,
            function_name,
            template,
            declaration_of(variables, template.variables),
            tuple(tools),
            dict(chat_options or {}),
            effect,
        )
        return self._invoker.add_prompt(made, description)

    def add_plugin(self, plugin: object, plugin_name: str) -> dict[str, KernelFunction]:
        """Add an object's ``@kernel_function`` and ``@function`` methods, or all that a dict
        holds by name: callables, and templates of prompts.

        Raises ValueError for a plugin without functions.
        """
        added = {
            name: self.add_function(plugin_name, function_name=name, **_kind(each))
            for name, each in functions_of(plugin)
        }
        if not added:
            raise ValueError(f"{plugin!r} has no method marked by @kernel_function")
        return added

    async def invoke(
        self, function: Invocable, arguments: Given = None, /, **variables: Any
    ) -> FunctionResult:
        """Run a function, by ``plugin.function`` or as ``add_function`` gave it.

        Raises UnknownFunctionError, BadArgumentsError, TemplateRenderError, what the service
        raises, and what a native function raises.
        """
        given = {**(arguments or {}), **variables}
        return await self._invoker.run(self._find(function), given, self._invoker.context())

    def invoke_sync(
        self, function: Invocable, arguments: Given = None, /, **variables: Any
    ) -> FunctionResult:
        """``invoke`` for blocking code."""
        return self._wait_for(self.invoke(function, arguments, **variables))

    async def render(
        self, function: Invocable, arguments: Given = None, /, **variables: Any
    ) -> RenderedPrompt:
        """The prompt that ``invoke`` would send; the functions of its template are called."""
        given = {**(arguments or {}), **variables}
        return await self._invoker.render(self._find(function), given)

    def render_sync(
        self, function: Invocable, arguments: Given = None, /, **variables: Any
    ) -> RenderedPrompt:
        """``render`` for blocking code."""
        return self._wait_for(self.render(function, arguments, **variables))

    def tools(self, *names: str) -> KernelTools:
        """The functions of these plugins, or these functions, or all, for ``run_tool_loop``.

        Raises UnknownFunctionError.
        """
        chosen = [each.function for each in self._invoker.functions.select(names)]
        return KernelTools([each.schema for each in chosen], {each.name: each for each in chosen})

    async def plan(self, goal: str, *names: str, max_steps: int = 8) -> Plan:
        """The steps by which the model would reach ``goal`` with these functions, or all.

        Functions that are not ``pure`` are not called: the model is told to go on as if they
        had worked.
        """
        return await make_plan(self._invoker, goal, names, max_steps=max_steps)

    def plan_sync(self, goal: str, *names: str, max_steps: int = 8) -> Plan:
        """``plan`` for blocking code."""
        return self._wait_for(self.plan(goal, *names, max_steps=max_steps))

    def _template(self, prompt: TemplateSource | PromptTemplate, *, strict: bool) -> PromptTemplate:
        if isinstance(prompt, PromptTemplate):
            return prompt
        return PromptTemplate(prompt, strict=strict, limits=self._invoker.limits)

    def _find(self, function: Invocable) -> KernelFunction:
        return self._invoker.functions.find(function) if isinstance(function, str) else function

    def _wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        service = self._invoker.service
        return run_blocking(work, on_callers_loop=service is not None and service.is_async)


def _kind(function: Any) -> dict[str, Any]:
    is_prompt = isinstance(function, str | list | PromptTemplate)
    return {"prompt" if is_prompt else "function": function}
