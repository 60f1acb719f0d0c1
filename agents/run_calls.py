"""What a run's calls of models cost, and who paid: told by whoever keeps that.

The journal is a sibling that this app may not import, so broker_project, which knows both,
registers a way to ask it when Django starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from agents.models import Run


@dataclass(frozen=True, slots=True)
class RunCall:
    """One attempt at a model, made for a step of a run."""

    call_id: UUID
    step: int | None
    started_at: datetime
    llm_name: str
    status: str
    latency_ms: int | None
    tokens: int | None
    cost_micros: int | None
    """Millionths of a US dollar; None is unknown."""
    paid_by: str | None
    """Whose key it was: the scope's own, the tenant's shared one, the installation's."""


Ask = Callable[[Run], Sequence[RunCall]]

_ask: Ask | None = None


def register_run_calls(ask: Ask) -> None:
    """Say how the calls of a run are found. Called once, by broker_project."""
    global _ask  # noqa: PLW0603 - one handle for one process is what this module is
    _ask = ask


def calls_of(run: Run) -> Sequence[RunCall]:
    """The attempts of a run, oldest first; none where nobody keeps them."""
    return () if _ask is None else _ask(run)
