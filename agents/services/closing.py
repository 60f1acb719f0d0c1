"""Ending runs that no worker has: cancelled while they wait, or expired."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from agents.models import Run, Step
from agents.services.events import append_events, entered
from llmbroker import ToolStatus
from llmbroker.tools.outcomes import INTERRUPTED, NOT_RUN, failure

BATCH = 100


def end_waiting_run(run: Run, status: Run.Status) -> None:
    """End a run that waits, whose row the caller's transaction has locked."""
    run.status = status
    Run.objects.filter(id=run.id).update(
        status=status, ended_at=Now(), cancel_requested_at=run.cancel_requested_at
    )
    run.refresh_from_db(fields=["ended_at"])
    for step in run.steps.filter(status__in=Step.OPEN):
        close_unfinished(step, Step.Status.CANCELLED)
        step.ended_at = run.ended_at
        step.save()
    append_events(run.id, entered(status))


def close_unfinished(step: Step, status: Step.Status) -> None:
    """Give a step that will not be finished its end; a tool call keeps the history whole."""
    step.status, step.needs = status, None
    if step.kind == Step.Kind.TOOL_CALL and step.result is None:
        problem = INTERRUPTED if step.attempts else NOT_RUN
        step.result = failure(step.name or "", problem)
        step.outcome = ToolStatus.INTERRUPTED


@transaction.atomic
def expire_runs() -> int:
    """End the runs that have waited for longer than they were meant to. Returns how many."""
    late = Run.objects.select_for_update(skip_locked=True).filter(
        status__in=Run.WAITING, expires_at__lte=Now()
    )
    runs = list(late[:BATCH])
    for run in runs:
        end_waiting_run(run, Run.Status.EXPIRED)
    return len(runs)
