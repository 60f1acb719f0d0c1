"""Running one tool of a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from threading import Event
from typing import Any

from django.db import connections
from django.utils import timezone

from agents.models import Run
from llmbroker import ToolCall, ToolContext, ToolResult
from llmbroker.tools.execution import refusal
from llmbroker.tools.toolbox import Runnable, Toolbox
from llmbroker.tools.work import result_of, settled

TIMEOUT = 30.0
"""Seconds that a tool may take that declares no time of its own."""


async def run_tool(
    run: Run, call: ToolCall, toolbox: Toolbox, cancellation: Event, time_left: float | None = None
) -> ToolResult:
    """What comes of ``call``: one text for the model, whatever the tool does.

    It gets at most ``time_left`` seconds. Cancelling stops the waiting, and the tool if it is a
    coroutine.
    """
    tool = toolbox.find(call.name)
    if tool is None or call.arguments is None:
        return refusal(call, toolbox)
    seconds = TIMEOUT if tool.timeout is None else tool.timeout
    seconds = seconds if time_left is None else min(seconds, time_left)
    context = ToolContext(
        run_id=str(run.id),
        scope=str(run.scope_id),
        tool_call_id=call.id,
        idempotency_key=f"{run.id}:{call.id}",
        deadline=timezone.now() + timedelta(seconds=seconds),
        cancellation=cancellation,
    )
    return result_of(call, await settled(_Releasing(tool), call, context, seconds), seconds)


class _Releasing:
    """A tool whose thread keeps no database connection when it has done its work."""

    def __init__(self, tool: Runnable) -> None:
        self._tool = tool
        self.function = tool.function
        self.is_async = tool.is_async
        self.sequential = tool.sequential
        self.timeout = tool.timeout

    def invoke(self, arguments: Mapping[str, Any], context: ToolContext | None) -> Any:
        """See Runnable.invoke."""
        if self.is_async:
            return self._tool.invoke(arguments, context)
        try:
            return self._tool.invoke(arguments, context)
        finally:
            connections.close_all()
