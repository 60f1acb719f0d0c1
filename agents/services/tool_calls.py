"""Running one tool of a run."""

from __future__ import annotations

from typing import Any

from agents.services.outcomes import ToolOutcome
from agents.tool_registry import ToolRegistry
from llmbroker import ToolCall
from llmbroker.tools.execution import execute, find


def run_tool(call: ToolCall, tools: ToolRegistry) -> ToolOutcome:
    """What comes of ``call``: one text for the model, whatever the tool does."""
    tool = find(call.name, tools)
    if tool is None:
        return ToolOutcome(execute(call, tools), succeeded=False)
    succeeded = False

    def observed(**arguments: Any) -> str:
        nonlocal succeeded
        text = str(tool(**arguments))
        succeeded = True
        return text

    return ToolOutcome(execute(call, {call.name: observed}), succeeded)
