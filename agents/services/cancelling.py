"""Cancelling: a row that every worker reads, not a message that can get lost."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.models import Run
from agents.services.closing import end_waiting_run
from agents.services.events import append_events, entered


@transaction.atomic
def cancel_run(*, run_id: UUID) -> Run:
    """Cancel a run: at once where it waits, else as soon as its worker hears of it.

    A worker gives up the model call that is under way, tells the tools at work, and waits for
    those whose effects must be accounted for. Doing it again changes nothing, and neither does
    cancelling a run that is over.
    """
    run = Run.objects.select_for_update().get(id=run_id)
    if run.is_over or run.status == Run.Status.CANCELLING:
        return run
    run.cancel_requested_at = timezone.now()
    if run.status in Run.WAITING:
        end_waiting_run(run, Run.Status.CANCELLED)
        return run
    run.status = Run.Status.CANCELLING
    run.save(update_fields=["status", "cancel_requested_at"])
    append_events(run.id, entered(run.status))
    return run
