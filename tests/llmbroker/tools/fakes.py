"""Models that say what a test wrote down, and what they were sent."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llmbroker import ToolResult, Usage
from llmbroker.models import Message

ASKED: list[Message] = [{"role": "user", "content": "go on"}]


@dataclass
class Said:
    """A reply of a model."""

    text: str = ""
    tool_calls: list[dict[str, Any]] | None = None
    usage: Usage | None = None
    finish_reason: str | None = None


def wants(*calls: tuple[str, object], **reply: Any) -> Said:
    """A reply that asks for calls given as (name, arguments)."""
    return Said(
        tool_calls=[
            {"id": None, "type": "function", "function": {"name": name, "arguments": given}}
            for name, given in calls
        ],
        **reply,
    )


class ScriptedModel:
    """A caller whose replies are used up in order; the last one is repeated."""

    def __init__(self, *replies: Said) -> None:
        self.replies = list(replies)
        self.sent: list[list[Message]] = []
        self.params: list[dict[str, Any] | None] = []
        self.tools: list[dict[str, Any]] | None = None
        self.scope = "ann"

    def chat(
        self,
        messages: list[Message],
        *,
        tools: list[dict[str, Any]] | None = None,
        params: dict[str, Any] | None = None,
    ) -> Said:
        self.sent.append(copy.deepcopy(messages))
        self.params.append(params)
        self.tools = tools
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    @property
    def results(self) -> list[str]:
        """What the last request told the model of its tools, last turn only."""
        texts: list[str] = []
        for message in reversed(self.sent[-1]):
            if message["role"] != "tool":
                break
            texts.append(message["content"])
        return texts[::-1]


class AsyncModel(ScriptedModel):
    """The same for async code."""

    async def chat(self, *args: Any, **kwargs: Any) -> Said:  # type: ignore[override]
        return super().chat(*args, **kwargs)


class Clock:
    """Time that a test moves."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


Drive = Callable[..., list[ToolResult]]
"""Has a model ask for calls, given as (name, arguments), and gives their results."""


def texts(results: list[ToolResult]) -> list[str]:
    """What the model is told."""
    return [each.text for each in results]
