"""What a worker's work came to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agents.models import Run
from agents.services.failures import failure
from llmbroker.tools.limits import Stop


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state in which a run is left, and why.

    One that ``hands_over`` stays at work, for another worker to take at once; one that is queued
    again is due at ``due_at``, or now.
    """

    status: Run.Status
    output_text: str | None = None
    incomplete_reason: Run.IncompleteReason | None = None
    last_error: dict[str, str] | None = None
    due_at: datetime | None = None
    hands_over: bool = False

    @property
    def is_final(self) -> bool:
        """Whether the run is over with it."""
        return self.status in Run.TERMINAL

    @classmethod
    def failed(cls, code: str, message: str) -> Outcome:
        """A run that cannot go on."""
        return cls(Run.Status.FAILED, last_error=failure(code, message))

    @classmethod
    def stopped(cls, stop: Stop) -> Outcome:
        """A run whose loop has reached a limit, or whose model cannot handle its tools."""
        if stop.reason.value not in Run.IncompleteReason.values:
            return cls.failed(stop.reason.value, stop.message)
        return cls(Run.Status.INCOMPLETE, incomplete_reason=Run.IncompleteReason(stop.reason.value))


CANCELLED = Outcome(Run.Status.CANCELLED)
"""A run that was cancelled in time."""

HANDED_OVER = Outcome(Run.Status.IN_PROGRESS, hands_over=True)
"""A run whose worker is being stopped."""

PUT_BACK = Outcome(Run.Status.QUEUED)
"""A run that has used its time while others wait."""
