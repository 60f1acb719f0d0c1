"""Runs functions: renders a prompt, calling what it calls, and sends it; or calls a native one."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

from llmbroker.errors import LLMBrokerError
from llmbroker.prompts.calling import Given, Prepared, in_one_thread, located, prepare
from llmbroker.prompts.functions import Functions, KernelFunction
from llmbroker.prompts.limits import TemplateLimits
from llmbroker.prompts.prompt import Prompt, prompt_function
from llmbroker.prompts.results import FunctionResult
from llmbroker.prompts.segments import RenderedPrompt
from llmbroker.prompts.service import Service
from llmbroker.prompts.trail import Trail, followed
from llmbroker.tools.context import ToolContext
from llmbroker.tools.run import arun_tool_loop


@dataclass(slots=True)
class Invoker:
    """The functions of a kernel, and what they are run with."""

    limits: TemplateLimits
    chat_options: Mapping[str, Any]
    service: Service | None = None
    functions: Functions = field(default_factory=Functions)

    def context(self) -> ToolContext:
        """What functions may know of a call that no model asked for."""
        return ToolContext(scope=self.service.scope if self.service else None)

    def add_prompt(self, prompt: Prompt, description: str | None) -> KernelFunction:
        """Add a prompt function, whose value as a tool is the model's answer."""

        async def run(variables: Given, context: ToolContext) -> Any:
            return (await self.answer(prompt, variables, context)).value

        function = prompt_function(prompt, run, description=description)
        return self.functions.add(KernelFunction(prompt.plugin_name, prompt.name, function, prompt))

    def chosen_service(self) -> Service:
        """What answers prompts. Raises LLMBrokerError if nothing does."""
        if self.service is None:
            raise LLMBrokerError(
                "this kernel has no service: Kernel(broker) or add_service(broker)"
            )
        return self.service

    async def run(
        self, function: KernelFunction, given: Given, context: ToolContext
    ) -> FunctionResult:
        """The function's result. Raises BadArgumentsError for what it does not take."""
        if function.prompt is not None:
            return await self.answer(function.prompt, _checked(function, given), context)
        with followed():
            value = await _in_time(function, _finished(function, given, context))
        return FunctionResult(function.full_name, value)

    async def answer(
        self, prompt: Prompt, variables: Given, context: ToolContext
    ) -> FunctionResult:
        """What the model answers to a prompt with these variables."""
        with followed(prompt.full_name, self.limits) as trail:
            rendered = await self._rendered(prompt, variables, context, trail)
            reply = await self._ask(prompt, rendered)
        return FunctionResult(prompt.full_name, reply.text, reply, rendered)

    async def render(self, function: KernelFunction, given: Given) -> RenderedPrompt:
        """The prompt that would be sent, with the functions of its template called.

        Raises ValueError for a native function.
        """
        prompt = function.prompt
        if prompt is None:
            raise ValueError(f"{function.full_name} is no prompt function")
        with followed(prompt.full_name, self.limits) as trail:
            return await self._rendered(prompt, _checked(function, given), self.context(), trail)

    async def _rendered(
        self, prompt: Prompt, variables: Given, context: ToolContext, trail: Trail
    ) -> RenderedPrompt:
        variables = {**prompt.variables.defaults, **variables}
        prompt.template.check(variables)
        trail.tally.add(len(prompt.template.calls), self.limits)
        calls = prepare(prompt, self.functions, variables, context)
        results: list[Any] = []
        for are_plain, group in itertools.groupby(calls, key=lambda call: call.is_plain):
            if are_plain:
                results += await in_one_thread(list(group))
            else:
                results += [await self._value(call) for call in group]
        return prompt.template.render(variables, results)

    async def _value(self, prepared: Prepared) -> Any:
        with located(prepared.call):
            result = await self.run(prepared.function, prepared.arguments, prepared.context)
        return result.value

    async def _ask(self, prompt: Prompt, rendered: RenderedPrompt) -> Any:
        service = self.chosen_service()
        # Ratings then teach which model is best for this very prompt.
        operation = {"operation": prompt.full_name} if service.names_operations else {}
        options = {**operation, **self.chat_options, **prompt.chat_options}
        messages = rendered.as_chat()
        if not prompt.tools:
            return await service.chat(messages, **options)
        tools = [each.function for each in self.functions.select(prompt.tools)]
        return await arun_tool_loop(service, messages, tools=tools, **options)


def _checked(function: KernelFunction, given: Given) -> Given:
    if function.prompt is None or not function.prompt.variables.is_checked:
        return given
    return function.function.arguments.validated(given)


async def _finished(function: KernelFunction, given: Given, context: ToolContext) -> Any:
    value = await function.function.acall(given, context)
    return await value if inspect.isawaitable(value) else value


async def _in_time(function: KernelFunction, work: Awaitable[Any]) -> Any:
    seconds = function.function.timeout
    try:
        async with asyncio.timeout(seconds) as time:
            return await work
    except TimeoutError:
        if time.expired():
            raise TimeoutError(f"no result within {seconds:g} seconds") from None
        raise
