"""What a worker's work came to."""

from __future__ import annotations

from dataclasses import dataclass

from agents.models import Run


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state in which a run is left, and why."""

    status: Run.Status
    output_text: str | None = None
    incomplete_reason: Run.IncompleteReason | None = None
    last_error: dict[str, str] | None = None

    @property
    def is_final(self) -> bool:
        """Whether the run is over with it."""
        return self.status in Run.TERMINAL


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool call came to: the text for the model, and whether the tool worked."""

    text: str
    succeeded: bool


CANCELLED = Outcome(Run.Status.CANCELLED)
"""A run that was cancelled in time."""
