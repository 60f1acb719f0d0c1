"""Who may write to a run: the worker with its newest fencing token, while its lease lasts.

Everything here is told by the database's clock, so that workers whose clocks differ agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Now

from agents.models import Run
from agents.services.events import append_events, entered

LEASE = timedelta(seconds=15)
"""How long a worker that has died still holds its runs. Each write and heartbeat renews it."""

LEASE_END = Now() + LEASE


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to one run."""

    run_id: UUID
    fence: int


class LeaseLostError(Exception):
    """Another worker has claimed the run: whatever this one still has in hand is not written."""


class CancelRequestedError(Exception):
    """The run is being cancelled: nothing new may begin."""


@transaction.atomic
def claim(run_id: UUID) -> tuple[Run, Lease] | None:
    """Take a run that waits for a worker or has lost its own; None if there is nothing to do."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
    run = (
        Run.objects.select_for_update()
        .filter(free, id=run_id, status__in=Run.CLAIMABLE, history_index=None)
        .first()
    )
    if run is None:
        return None
    run.fence += 1
    begins = run.status == Run.Status.QUEUED
    if begins:
        run.status = Run.Status.IN_PROGRESS
    Run.objects.filter(id=run.id).update(
        fence=run.fence,
        status=run.status,
        lease_until=LEASE_END,
        started_at=Coalesce("started_at", Now()),
    )
    if begins:
        append_events(run.id, entered(Run.Status.IN_PROGRESS))
    return run, Lease(run.id, run.fence)


@contextmanager
def checkpoint(
    lease: Lease, *, during: Collection[str] = Run.WORKING, **changes: Any
) -> Iterator[None]:
    """One transaction of the lease's holder, which locks the run and may change columns of it.

    Raises LeaseLostError or CancelRequestedError, with nothing written, unless the lease is
    still this worker's and the run is in one of the states ``during``.
    """
    with transaction.atomic():
        held = Run.objects.filter(id=lease.run_id, fence=lease.fence, status__in=Run.WORKING)
        if not held.filter(status__in=during).update(**{"lease_until": LEASE_END, **changes}):
            raise CancelRequestedError if held.exists() else LeaseLostError
        yield


def extend(leases: Collection[Lease]) -> None:
    """Renew all these leases, those that are lost excepted, in one statement."""
    if leases:
        held = reduce(or_, (Q(id=lease.run_id, fence=lease.fence) for lease in leases))
        Run.objects.filter(held, status__in=Run.WORKING).update(lease_until=LEASE_END)
