"""What a loop has to tell of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llmbroker.models import Message
from llmbroker.tools.calls import ToolCall
from llmbroker.tools.outcomes import ToolStatus
from llmbroker.tools.repeats import WARN_AT, WARNING


@dataclass(slots=True)
class ToolResult:
    """What one call came to."""

    call: ToolCall
    text: str
    status: ToolStatus = ToolStatus.SUCCESS

    def message(self, streak: int = 0) -> Message:
        """The result as it goes into the history; a long ``streak`` of it is pointed out."""
        warning = WARNING.format(count=streak) if streak >= WARN_AT else ""
        return {"role": "tool", "tool_call_id": self.call.id, "content": self.text + warning}


@dataclass(slots=True)
class ToolStep:
    """One call of the model, and the results of the tools that it asked for."""

    number: int
    reply: Any
    results: tuple[ToolResult, ...] = ()
