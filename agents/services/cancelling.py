"""Cancelling: a row that every worker reads, not a message that can get lost."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.models import Run, Step
from agents.services.events import append_events, entered


@transaction.atomic
def cancel_run(*, run_id: UUID) -> Run:
    """Cancel a run: at once where it waits, at its next step where a worker is at it.

    Doing it again changes nothing, and neither does cancelling a run that is over.
    """
    run = Run.objects.select_for_update().get(id=run_id)
    if run.is_over or run.status == Run.Status.CANCELLING:
        return run
    run.cancel_requested_at = timezone.now()
    if run.status in Run.WAITING:
        run.status = Run.Status.CANCELLED
        run.ended_at = run.cancel_requested_at
        _close_open_steps(run)
    else:
        run.status = Run.Status.CANCELLING
    run.save(update_fields=["status", "cancel_requested_at", "ended_at"])
    append_events(run.id, entered(run.status))
    return run


def _close_open_steps(run: Run) -> None:
    Step.objects.filter(run_id=run.pk, status__in=Step.OPEN).update(
        status=Step.Status.CANCELLED, ended_at=run.ended_at
    )
