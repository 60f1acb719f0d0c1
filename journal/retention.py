"""Deleting, a batch at a time: short statements, short locks, and vacuum keeps up in between."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from journal.figures.adding_up import add_stale_days, figures_until, keep_counts
from journal.models import Call, DailyFigures, Payload
from journal.moments import EPOCH, first_id_at
from journal.selectors import kept_since, policy_of
from tenants.models import Tenant

log = logging.getLogger(__name__)

BATCH = 2000
NEVER = datetime.max.replace(tzinfo=UTC)


def apply_retention(*, now: datetime, batch: int = BATCH) -> dict[str, int]:
    """Delete what is older than each tenant keeps; how many calls and payloads went."""
    gone = {"calls": 0, "payloads": 0}
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True).iterator():
        cutoff = now - timedelta(days=policy_of(tenant_id).payload_days)
        gone["payloads"] += sum(delete_payloads(tenant_id=tenant_id, before=cutoff, batch=batch))
        cutoff = kept_since(tenant_id, now)
        gone["calls"] += sum(delete_calls(tenant_id=tenant_id, before=cutoff, batch=batch))
    return gone


def erase_journal(*, tenant_id: UUID, batch: int = BATCH) -> int:
    """Delete everything that the journal holds of a tenant; how many rows went.

    The installation's totals keep its counts: they say what was called, and what was paid with
    the installation's keys. Its sealed payloads are unreadable from the moment its data keys are
    gone, so destroy those first. Its people can call nothing any more.
    """
    gone = sum(delete_payloads(tenant_id=tenant_id, batch=batch))
    add_stale_days(tenant_id=tenant_id)
    until = figures_until() or EPOCH
    gone += sum(delete_calls(tenant_id=tenant_id, before=until, batch=batch))
    gone += _delete_recent(tenant_id, until, batch)
    return gone + DailyFigures.objects.filter(tenant_id=tenant_id).delete()[0]


@transaction.atomic
def _delete_recent(tenant_id: UUID, since: datetime, batch: int) -> int:
    """Those that are in no figures yet, an hour's: counted and deleted at once, or not at all."""
    keep_counts(tenant_id)
    return sum(delete_calls(tenant_id=tenant_id, since=since, batch=batch))


def delete_calls(
    *,
    tenant_id: UUID,
    since: datetime = EPOCH,
    before: datetime | None = None,
    batch: int = BATCH,
) -> Iterator[int]:
    """Delete a tenant's calls of that time, oldest first, with their ratings.

    ``since`` spares reading over what was just deleted, which is there until a vacuum.
    """
    calls = Call.objects.filter(tenant_id=tenant_id, id__gte=first_id_at(since))
    return _delete(calls, before, batch)


def delete_payloads(
    *, tenant_id: UUID, before: datetime | None = None, batch: int = BATCH
) -> Iterator[int]:
    """Delete what a tenant's calls ``before`` said."""
    return _delete(Payload.objects.filter(tenant_id=tenant_id), before, batch)


def _delete(
    rows: "QuerySet[Call] | QuerySet[Payload]", before: datetime | None, batch: int
) -> Iterator[int]:
    """By ranges of ids, so that each statement reads one index from where the last one ended.

    ``_raw_delete`` is Django's delete without reading the rows first: nothing of ours hangs
    on them, and the database itself removes their ratings.
    """
    if before is not None:
        rows = rows.filter(id__lt=first_id_at(before))
    after = UUID(int=0)
    while True:
        ids = list(rows.filter(id__gt=after).order_by("id").values_list("id", flat=True)[:batch])
        if not ids:
            return
        within = rows.filter(id__gt=after, id__lte=ids[-1])
        yield within._raw_delete(rows.db)  # noqa: SLF001
        after = ids[-1]
