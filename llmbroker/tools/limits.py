"""What ends a tool loop before the model has answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from llmbroker.errors import ToolLoopLimitError

MAX_REPEATS = 4
"""Turns in a row with the same call and the same result."""

MAX_UNKNOWN_TOOLS = 5
"""Calls of tools that do not exist, in all."""

MAX_REASKS = 2
"""How often in a row the model is asked again for arguments that could not be read."""

MAX_CALLS_PER_TURN = 32
"""Calls of one turn beyond these are not run."""

Clock = Callable[[], float]
CostOf = Callable[[Any], float | None]
"""What a reply has cost, in the money of ``max_cost``; None where that is not known."""


class StopReason(StrEnum):
    """Why a loop ended without an answer."""

    MAX_STEPS = "max_steps"
    MAX_TOKENS = "max_tokens"
    BUDGET = "budget"
    DEADLINE = "deadline"
    LOOP = "loop"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"


SPENT = frozenset({StopReason.MAX_TOKENS, StopReason.BUDGET, StopReason.DEADLINE})
"""What ran out in these leaves nothing for a last answer either."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a loop ended, as a word for programs and a sentence for people."""

    reason: StopReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a loop may go; None is no limit. ``deadline`` is in seconds since the epoch."""

    max_steps: int = 8
    max_tokens: int | None = None
    max_cost: float | None = None
    deadline: float | None = None
    max_repeats: int | None = MAX_REPEATS

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_tokens", "max_repeats"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is at least 1, got {value}")


class ToolLoopStoppedError(ToolLoopLimitError):
    """A ToolLoopLimitError that says in ``reason`` which limit it was."""

    def __init__(self, stop: Stop, **conversation: Any) -> None:
        super().__init__(stop.message, **conversation)
        self.reason = stop.reason


def moment(deadline: datetime | timedelta | None, clock: Clock = time.time) -> float | None:
    """``deadline`` in seconds since the epoch; a timedelta counts from now.

    Raises ValueError for a time without a zone.
    """
    if deadline is None:
        return None
    if isinstance(deadline, timedelta):
        return clock() + deadline.total_seconds()
    if deadline.tzinfo is None:
        raise ValueError("a deadline needs a time zone, such as datetime.now(UTC)")
    return deadline.timestamp()
