"""Deleting runs that their tenants do not keep, a batch at a time, with all that hangs on them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from agents.models import Event, Run, RunRetention, Step, Thread, WebhookDelivery
from agents.selectors import run_retention_of
from tenants.models import Tenant
from tenants.services.audit import difference, note, values_of

BATCH = 500


@transaction.atomic
def keep_runs(*, tenant: Tenant, values: Mapping[str, Any] | None) -> None:
    """Change the given fields of how long a tenant keeps its runs; None is the settings' again."""
    kept = run_retention_of(tenant)
    before = values_of(kept, ("days",))
    if values is None:
        RunRetention.objects.filter(tenant=tenant).delete()
    else:
        kept, _ = RunRetention.objects.update_or_create(
            tenant=tenant, defaults={**before, **values}
        )
    changes = {"policy": None} if values is None else difference(before, kept)
    note("retention.runs", kept, tenant_id=tenant.pk, changes=changes)


def delete_old_runs(*, now: datetime, batch: int = BATCH) -> int:
    """Delete the runs, and the threads, that ended longer ago than each tenant keeps them."""
    gone = 0
    kept = dict(RunRetention.objects.values_list("tenant_id", "days"))
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True):
        days = kept.get(tenant_id, settings.RUN_DAYS)
        if days is not None:
            before = now - timedelta(days=days)
            gone += _delete_runs(tenant_id, before, batch)
            _delete_threads(tenant_id, before, batch)
    return gone


def _delete_runs(tenant_id: UUID, before: datetime, batch: int) -> int:
    gone = 0
    over = Run.objects.filter(tenant_id=tenant_id, ended_at__lt=before).order_by("id")
    while ids := list(over.values_list("id", flat=True)[:batch]):
        with transaction.atomic():
            # Rows of these are many and have no listeners: Django need not read them first.
            for rows in (
                WebhookDelivery.objects.filter(event__run__in=ids),
                Event.objects.filter(run__in=ids),
                Step.objects.filter(run__in=ids),
                Run.objects.filter(id__in=ids),
            ):
                rows._raw_delete(rows.db)  # noqa: SLF001
        gone += len(ids)
    return gone


def _delete_threads(tenant_id: UUID, before: datetime, batch: int) -> None:
    silent = (
        Thread.objects.filter(tenant_id=tenant_id, created_at__lt=before, runs=None)
        .annotate(last=Max("messages__created_at"))
        .exclude(last__gte=before)
        .order_by("id")
    )
    while ids := list(silent.values_list("id", flat=True)[:batch]):
        Thread.objects.filter(id__in=ids, runs=None).delete()
