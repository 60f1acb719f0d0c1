"""Finding the runs that nobody works on: lost rings, and workers that died."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from agents.models import Run
from agents.services.doorbell import ring

RING_AGAIN_AFTER = timedelta(seconds=15)
"""A ring that nobody has answered for so long may be lost: workers may also just be busy."""

BATCH = 100


def reap_runs() -> int:
    """Ring for runs without a worker, those that were rung for longest ago first. Returns how many.

    Changes no run's state: who claims a run decides what becomes of it.
    """
    with transaction.atomic():
        nobodys = (
            Run.objects.select_for_update(skip_locked=True)
            .filter(
                status__in=Run.CLAIMABLE,
                history_index=None,
                rung_at__lt=Now() - RING_AGAIN_AFTER,
            )
            .filter(Q(lease_until__isnull=True) | Q(lease_until__lt=Now()))
            .order_by("rung_at")
        )
        ids = list(nobodys.values_list("id", flat=True)[:BATCH])
        Run.objects.filter(id__in=ids).update(rung_at=Now())
    for run_id in ids:
        ring(run_id)
    return len(ids)
