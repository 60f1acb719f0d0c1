"""Running one tool of a run."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from django.utils import timezone

from agents.models import Run
from agents.time_limit import within
from agents.tool_registry import ToolRegistry
from llmbroker import ToolCall, ToolContext, ToolResult, ToolStatus
from llmbroker.tools.execution import refusal, run_here
from llmbroker.tools.outcomes import TIMED_OUT, failure

TIMEOUT = 30.0
"""Seconds that a tool may take that declares no time of its own."""


def run_tool(run: Run, call: ToolCall, tools: ToolRegistry) -> ToolResult:
    """What comes of ``call``: one text for the model, whatever the tool does."""
    toolbox = tools.toolbox
    tool = toolbox.find(call.name)
    if tool is None or call.arguments is None:
        return refusal(call, toolbox)
    seconds = TIMEOUT if tool.timeout is None else tool.timeout
    context = ToolContext(
        run_id=str(run.id),
        scope=str(run.scope_id),
        tool_call_id=call.id,
        idempotency_key=f"{run.id}:{call.id}",
        deadline=timezone.now() + timedelta(seconds=seconds),
    )
    try:
        return within(seconds, partial(run_here, call, toolbox, context))
    except TimeoutError:
        text = failure(call.name, TIMED_OUT.format(seconds=seconds))
        return ToolResult(call, text, ToolStatus.TIMEOUT)
