"""The beat's second look: workers find what is due by themselves, unless they all sleep."""

from __future__ import annotations

from django.db.models import Q
from django.db.models.functions import Now

from agents.models import Run
from agents.services.doorbell import ring


def reap_runs() -> bool:
    """Ring if there are runs that are due or have lost their worker. Returns whether.

    Changes no run: who claims it decides what becomes of it.
    """
    due = Q(status=Run.Status.QUEUED, due_at__lte=Now(), history_index=None)
    lost = Q(status__in=Run.WORKING) & (Q(lease_until__isnull=True) | Q(lease_until__lt=Now()))
    if not Run.objects.filter(due | lost).exists():
        return False
    ring()
    return True
