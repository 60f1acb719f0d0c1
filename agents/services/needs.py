"""What a tool call must wait for before it can run: a word, a client's output, an outcome."""

from __future__ import annotations

from typing import Any

from agents.models import Run, Step
from agents.services.replay import Position
from agents.tool_registry import Tool, ToolRegistry
from llmbroker import BadArgumentsError, Function, ToolCall


def with_client_tools(tools: ToolRegistry, run: Run) -> ToolRegistry:
    """The run's tools, those included that its client runs."""
    return tools.with_tools(map(_client_tool, run.client_tools)) if run.client_tools else tools


def needs_of(step: Step, position: Position, tools: ToolRegistry) -> Step.Needs | None:
    """What ``step`` has to wait for; None if it can run now.

    A call that cannot be run as it is waits for nobody: the model is told at once.
    """
    if step.kind != Step.Kind.TOOL_CALL:
        return None
    tool = _tool(step, tools)
    call = position.call_of(step)
    if tool is None or call.arguments is None:
        return None
    if step.attempts and tool.effect == "once":
        return Step.Needs.OUTCOME
    if step.decision is not None or not _is_valid(tool.function, call):
        return None
    if tool.source == "client":
        return Step.Needs.OUTPUT
    return Step.Needs.APPROVAL if tool.function.requires_approval else None


def effect_of(step: Step, tools: ToolRegistry) -> str | None:
    """What it means to run the step's tool again; None if there is no such tool."""
    tool = _tool(step, tools)
    return None if tool is None else tool.effect


def _tool(step: Step, tools: ToolRegistry) -> Tool | None:
    function = tools.toolbox.find(step.name or "")
    return tools[function.name] if isinstance(function, Function) else None


def _is_valid(function: Function[..., Any], call: ToolCall) -> bool:
    try:
        function.arguments.validated(call.arguments or {})
    except BadArgumentsError:
        return False
    return True


def _client_tool(schema: dict[str, Any]) -> Tool:
    def elsewhere(**_: Any) -> None:
        raise RuntimeError("this tool is run by the client")

    function = Function(
        elsewhere,
        name=schema["name"],
        description=schema.get("description", ""),
        parameters=schema["parameters"],
    )
    return Tool(function, "client")
