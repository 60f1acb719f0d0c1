"""What a tool may know of the call that it serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Given to every parameter annotated with this class; models never see such a parameter.

    ``scope`` says in whose name the run calls models; ``idempotency_key`` is the same whenever
    this very call is run again, in this process or another; ``deadline`` is when its result
    will no longer be waited for; ``cancellation`` is set once the run is being cancelled, for a
    tool that can stop half-way. What nobody knows is None.
    """

    run_id: str | None = None
    scope: str | None = None
    tool_call_id: str | None = None
    idempotency_key: str | None = None
    deadline: datetime | None = None
    cancellation: Event | None = field(default=None, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the run is being cancelled."""
        return self.cancellation is not None and self.cancellation.is_set()

    def seconds_left(self, now: datetime | None = None) -> float | None:
        """Time until the deadline, at least 0; None where there is none."""
        if self.deadline is None:
            return None
        return max(0.0, (self.deadline - (now or datetime.now(UTC))).total_seconds())
