"""What a tool loop has spent so far, and which limit that reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from llmbroker.models import Usage
from llmbroker.tools.calls import ToolCall
from llmbroker.tools.limits import MAX_REASKS, MAX_UNKNOWN_TOOLS, Limits, Stop, StopReason
from llmbroker.tools.outcomes import ToolStatus
from llmbroker.tools.repeats import Repeats


@dataclass(slots=True)
class Tally:
    """``cost`` is in the money of ``max_cost``; ``unreadable`` counts turns in a row."""

    steps: int = 0
    usage: Usage | None = None
    cost: float = 0.0
    unreadable: int = 0
    unknown_tools: int = 0
    repeats: Repeats = field(default_factory=Repeats)

    def add_reply(self, usage: Usage | None, cost: float | None) -> None:
        """Count one call of the model."""
        self.steps += 1
        self.cost += cost or 0.0
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def add_calls(self, calls: Sequence[ToolCall]) -> None:
        """Count whether the turn's calls could be read."""
        unreadable = any(call.arguments is None for call in calls)
        self.unreadable = self.unreadable + 1 if unreadable else 0

    def add_status(self, status: ToolStatus) -> None:
        """Count how one call ended."""
        if status is ToolStatus.UNKNOWN_TOOL:
            self.unknown_tools += 1

    def stop(self, limits: Limits, now: float) -> Stop | None:
        """The first limit that is reached, or None."""
        return next(self._stops(limits, now), None)

    def state(self) -> dict[str, Any]:
        """As JSON."""
        usage = self.usage.as_dict() if self.usage else None
        return {**asdict(self), "usage": usage, "repeats": dict(self.repeats.streaks)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Tally:
        """The tally that gave ``state``."""
        usage = Usage(**state["usage"]) if state["usage"] else None
        return cls(**{**state, "usage": usage, "repeats": Repeats(state["repeats"])})

    def _stops(self, limits: Limits, now: float) -> Iterator[Stop]:
        yield from self._spent(limits, now)
        if self.unreadable > MAX_REASKS:
            yield Stop(
                StopReason.INVALID_ARGUMENTS,
                f"the model sent arguments that cannot be read {self.unreadable} times in a row",
            )
        if self.unknown_tools >= MAX_UNKNOWN_TOOLS:
            yield Stop(
                StopReason.UNKNOWN_TOOL,
                f"the model called tools that do not exist {self.unknown_tools} times",
            )
        if self.steps >= limits.max_steps:
            yield Stop(
                StopReason.MAX_STEPS,
                f"the model still asked for tools after max_steps={limits.max_steps} calls;"
                " raise max_steps, or catch ToolLoopLimitError and use its .messages",
            )
        if limits.max_repeats is not None and self.repeats.longest >= limits.max_repeats:
            yield Stop(
                StopReason.LOOP,
                f"the model made the same call with the same result {self.repeats.longest}"
                " times in a row",
            )

    def _spent(self, limits: Limits, now: float) -> Iterator[Stop]:
        tokens = (self.usage.total_tokens if self.usage else None) or 0
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            yield Stop(
                StopReason.MAX_TOKENS,
                f"the run has used {tokens} tokens of max_tokens={limits.max_tokens}",
            )
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            yield Stop(
                StopReason.BUDGET,
                f"the run has cost {self.cost:g} of max_cost={limits.max_cost:g}",
            )
        if limits.deadline is not None and now >= limits.deadline:
            yield Stop(StopReason.DEADLINE, "the run has reached its deadline")
