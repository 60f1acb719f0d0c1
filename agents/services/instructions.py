"""What a run begins with: its agent's words, or what a prompt function makes of variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.models import Agent, PromptVersion
from agents.selectors import version_of
from agents.tool_registry import ToolRegistry
from agents.tool_sources.prompts import instructions, is_harmless
from llmbroker import BadArgumentsError, PromptTemplate, TemplateRenderError
from llmbroker.models import Message
from tenants.errors import InvalidInput


def instructions_for(
    agent: Agent, variables: Mapping[str, Any] | None, available: ToolRegistry
) -> list[Message]:
    """The messages before the request's own. Raises InvalidInput for what does not fit."""
    if agent.prompt is None:
        if variables:
            raise InvalidInput(
                "Variables are for an agent whose instructions a prompt makes.", param="variables"
            )
        words = agent.instructions
        return [{"role": "system", "content": words}] if words else []
    version = version_of(agent.prompt)
    check_instructions(version, available)
    try:
        return instructions(version, variables or {}, available)
    except (BadArgumentsError, TemplateRenderError) as error:
        problem = f"The instructions cannot be made: {error}"
    raise InvalidInput(problem, code="render_failed", param="variables")


def check_instructions(version: PromptVersion, available: ToolRegistry) -> None:
    """Refuse a prompt that calls what cannot be called while a request waits for its answer.

    Raises InvalidInput.
    """
    for call in PromptTemplate(version.template).calls:
        name = call.name.replace(".", "-")
        if name not in available or not is_harmless(available[name]):
            raise InvalidInput(
                f"Instructions can only call native tools that change nothing, not {call.name}.",
                param="prompt",
            )
