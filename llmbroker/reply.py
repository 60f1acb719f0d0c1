"""What a caller gets back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from llmbroker.models import Completion, KeySource, Message, Usage


@dataclass(slots=True)
class RoutedReply:
    """A reply that the pool gave: what it says, and which model said it at whose cost."""

    text: str
    tool_calls: list[dict[str, Any]] | None
    usage: Usage | None
    llm_name: str
    call_id: str
    operation: str | None
    finish_reason: str | None
    reasoning: str | None
    model: str | None
    key_source: KeySource | None
    message: Message = field(repr=False)
    cost_micros: int | None = field(default=None, kw_only=True)
    """Millionths of a US dollar, where the broker knows prices and the model has one."""


@dataclass(slots=True)
class AsyncReply(RoutedReply):
    """A reply of AsyncBroker."""

    _rate: Callable[[str, float], Awaitable[None]] = field(repr=False, kw_only=True)

    async def record_quality(self, score: float) -> None:
        """Rate this reply, 0.0 (useless) to 1.0 (as good as it gets)."""
        await self._rate(self.call_id, score)


@dataclass(slots=True)
class Reply(RoutedReply):
    """A reply of Broker."""

    _rate: Callable[[str, float], None] = field(repr=False, kw_only=True)

    def record_quality(self, score: float) -> None:
        """Rate this reply, 0.0 (useless) to 1.0 (as good as it gets)."""
        self._rate(self.call_id, score)


@dataclass(frozen=True, slots=True)
class DirectResult:
    """A reply of a direct client. It names no model and no call: the model was the caller's
    choice, and direct calls are not journaled."""

    text: str
    tool_calls: list[dict[str, Any]] | None = None
    usage: Usage | None = None

    @classmethod
    def of(cls, completion: Completion) -> DirectResult:
        """The result that ``completion`` makes."""
        return cls(completion.text, completion.tool_calls, completion.usage)
