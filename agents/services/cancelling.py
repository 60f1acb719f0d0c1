"""Cancelling: a row that every worker reads, not a message that can get lost."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.models import Run
from agents.services.closing import end_waiting_run
from agents.services.events import append_events, entered

BATCH = 500
"""Runs that one request cancels."""


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


def cancel_runs(*, runs: QuerySet[Run]) -> tuple[int, bool]:
    """Cancel up to BATCH of these that are not over, oldest first: how many, and if more are left.

    Each in a transaction of its own: one that is locked holds up no other for long.
    """
    going = runs.exclude(status__in=(*Run.TERMINAL, Run.Status.CANCELLING)).order_by("id")
    ids = list(going.values_list("id", flat=True)[: BATCH + 1])
    for run_id in ids[:BATCH]:
        cancel_run(run_id=run_id)
    return len(ids[:BATCH]), len(ids) > BATCH
