"""Prompt functions as tools: a kernel of the engine over all that the tenant has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from agents.models import PromptVersion
from agents.tool_registry import Tool, ToolRegistry
from llmbroker import Function, Kernel
from llmbroker.models import Message
from llmbroker.prompts.segments import RenderedPrompt

TIMEOUT = 180.0
"""Seconds that a prompt function may take as a tool: models are slower than other tools."""

NOT_CALLED = "({name} is not called here)"

log = logging.getLogger(__name__)


def prompt_tools(
    versions: Iterable[PromptVersion],
    tools: ToolRegistry,
    service: Any = None,
    chat_options: Mapping[str, Any] | None = None,
) -> list[Tool]:
    """The prompt functions as tools. They can call each other and ``tools``; ``service``, a
    scoped caller, answers them, and ``chat_options`` go to each of its calls."""
    kernel = Kernel(service, chat_options=chat_options)
    _add_all(kernel, tools)
    found = []
    for version in versions:
        try:
            found.append(Tool(add_prompt(kernel, version).replaced(timeout=TIMEOUT), "prompt"))
        except ValueError as error:  # checked when it was saved, by an older grammar perhaps
            log.warning("prompt %s is left out: %s", version.prompt_id, error)
    return found


def add_prompt(kernel: Kernel, version: PromptVersion) -> Function[..., Any]:
    """Add one version to a kernel. Raises ValueError for what the engine refuses."""
    plugin, name = split(version.prompt.slug)
    return kernel.add_function(
        plugin,
        function_name=name,
        prompt=version.template,
        description=version.description,
        variables=version.variables,
        tools=[name.replace("-", ".") for name in version.tools],
        effect=version.effect or None,  # type: ignore[arg-type]
    ).function


def preview(
    version: PromptVersion, values: Mapping[str, Any], tools: ToolRegistry
) -> RenderedPrompt:
    """The prompt with ``values`` filled in. No model is asked, and of ``tools`` only those run
    that belong to this process and change nothing; the others leave a note in their place.

    Raises BadArgumentsError and TemplateRenderError.
    """
    kernel = Kernel()
    _add_all(kernel, (tool if is_harmless(tool) else _silent(tool) for tool in tools.values()))
    add_prompt(kernel, version)
    return kernel.render_sync(version.prompt.slug, dict(values))


def instructions(
    version: PromptVersion, values: Mapping[str, Any], tools: ToolRegistry
) -> list[Message]:
    """The messages that a run begins with; a prompt that is one text is the system's."""
    messages = preview(version, values, tools).as_chat()
    if isinstance(version.template, str):
        messages[0]["role"] = "system"
    return messages


def is_harmless(tool: Tool) -> bool:
    """Whether a template may call it while a request waits: it changes nothing and is here."""
    return tool.source == "native" and tool.effect == "pure"


def split(name: str) -> tuple[str, str]:
    """Plugin and function of a tool's name."""
    plugin, _, function = name.partition("-")
    return plugin, function


def _add_all(kernel: Kernel, tools: Iterable[Tool] | ToolRegistry) -> None:
    for tool in tools.values() if isinstance(tools, ToolRegistry) else tools:
        plugin, name = split(tool.name)
        kernel.add_function(plugin, tool.function, function_name=name)


def _silent(tool: Tool) -> Tool:
    def not_called(**arguments: Any) -> str:  # noqa: ARG001 - they are checked, and that is all
        return NOT_CALLED.format(name=tool.name)

    silent = Function(not_called, name=tool.name, parameters=tool.parameters)
    return Tool(silent, tool.source)
