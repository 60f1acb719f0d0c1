"""Calls added up into days, in the background and once each.

The figures hold every call whose id is of a moment before their progress. They follow now at
a distance within which every call has ended or counts as lost. What still comes later (from
the spool of a process that was away) marks its day stale, and that day is added up again.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from journal.figures.cells import ADDED, COUNTED, MEASURED, NAMES, SUMS
from journal.figures.strides import follow, progress
from journal.figures.sweeping import LOST, sweep
from journal.models import EVERYBODY, Call, DailyFigures, Progress, StaleDay
from journal.moments import earliest_id, first_id_at, latest_id
from journal.retention import kept_since
from llmbroker.models import CallStatus

NAME = "figures"

KEY = ("tenant_id", "scope_id", "day", *NAMES)
_NAMES = ", ".join(("day", *NAMES))
# Keys are told apart within a tenant. Of the installation they would undo all adding up, since
# most belong to one scope.
_WITHOUT_KEYS = _NAMES.replace(", key_id", "")
_KEYS_OR_NONE = _NAMES.replace("key_id", "coalesce(key_id, '')")
_NO_KEYS = _NAMES.replace("key_id", "''")
_INTO = f"""
INSERT INTO journal_dailyfigures AS figures
    ({", ".join(KEY)}, calls, errors, {", ".join(SUMS)}, latencies, failures)
"""
_ADD = f"""
ON CONFLICT ({", ".join(KEY)}) DO UPDATE SET
    {
    ", ".join(
        f"{name} = coalesce(figures.{name} + excluded.{name}, figures.{name}, excluded.{name})"
        for name in ("calls", "errors", *SUMS)
    )
},
    latencies = journal_merge(figures.latencies, excluded.latencies),
    failures = journal_merge(figures.failures, excluded.failures)
"""
# Each level is counted by itself: of the scope, of its tenant, of the installation.
_CALLS = f"""
WITH counted AS (
    SELECT tenant_id, scope_id, {_NAMES}, bucket, cause, {COUNTED}
    FROM (
        SELECT tenant_id, scope_id, (ts AT TIME ZONE 'UTC')::date AS day, {MEASURED}
        FROM journal_call WHERE {{where}}
    ) AS measured
    GROUP BY GROUPING SETS ({{levels}})
)
{_INTO}
SELECT coalesce(tenant_id, %s), coalesce(scope_id, %s), {_KEYS_OR_NONE}, {ADDED}
FROM counted GROUP BY tenant_id, scope_id, {_NAMES}
{_ADD}
"""  # noqa: S608 - names of columns, no values
_SCOPES = f"(tenant_id, scope_id, {_NAMES}, bucket, cause)"
_TENANTS = f"(tenant_id, {_NAMES}, bucket, cause)"
_ALL = f"({_WITHOUT_KEYS}, bucket, cause)"

ADD_STRETCH = _CALLS.format(where="id >= %s AND id < %s", levels=f"{_SCOPES}, {_TENANTS}, {_ALL}")
ADD_DAY = _CALLS.format(
    where="scope_id = %s AND id >= %s AND id < %s AND ts >= %s AND ts < %s", levels=_SCOPES
)
ADD_TOTAL = f"""
{_INTO}
SELECT %s, %s, {{names}}, sum(calls), sum(errors), {", ".join(f"sum({name})" for name in SUMS)},
       journal_merged(latencies), journal_merged(failures)
FROM journal_dailyfigures WHERE day = %s AND {{where}} GROUP BY {_WITHOUT_KEYS}{{keys}}
"""  # noqa: S608


def add_up(*, now: datetime, strides: int = 24 * 400) -> None:
    """Bring the figures up to what is settled at ``now``, stale days included."""
    settled = sweep(now=now)
    if settled is not None:
        follow(NAME, _add_stretch, until=settled, strides=strides)
    for stale in list(StaleDay.objects.order_by("id")):
        _add_again(stale)


def _add_stretch(since: datetime, until: datetime) -> None:
    _execute(ADD_STRETCH, [first_id_at(since), first_id_at(until), EVERYBODY, EVERYBODY])


@transaction.atomic
def _add_again(stale: StaleDay) -> None:
    """Forget the figures of a scope's day and of its totals, and make them anew."""
    done = Progress.objects.select_for_update().filter(name=NAME).first()
    stale.delete()
    start = datetime.combine(stale.day, time(), UTC)
    end = start + timedelta(days=1)
    if done is None or earliest_id(start) >= first_id_at(done.until):
        return
    ids = earliest_id(start), min(latest_id(end), first_id_at(done.until))
    calls = Call.objects.filter(scope_id=stale.scope_id, id__gte=ids[0], id__lt=ids[1])
    calls.filter(status=CallStatus.STARTED.value).update(**LOST)
    tenant_id = calls.values_list("tenant_id", flat=True).first()
    if tenant_id is None or start < kept_since(tenant_id, timezone.now()):
        return  # of a day whose calls are gone in part, the figures stay as they are
    DailyFigures.objects.filter(
        tenant_id=tenant_id, scope_id=stale.scope_id, day=stale.day
    ).delete()
    _execute(ADD_DAY, [stale.scope_id, *ids, start, end, EVERYBODY, EVERYBODY])
    add_totals(tenant_id, stale.day)


def add_totals(tenant_id: UUID, day: date) -> None:
    """Make the day's totals of a tenant, and of the installation, from those below them."""
    totals = DailyFigures.objects.filter(scope_id=EVERYBODY, day=day)
    totals.filter(tenant_id__in=(tenant_id, EVERYBODY)).delete()
    of_tenant = ADD_TOTAL.format(
        names=_NAMES, where="tenant_id = %s AND scope_id <> %s", keys=", key_id"
    )
    _execute(of_tenant, [tenant_id, EVERYBODY, day, tenant_id, EVERYBODY])
    of_all = ADD_TOTAL.format(names=_NO_KEYS, where="tenant_id <> %s AND scope_id = %s", keys="")
    _execute(of_all, [EVERYBODY, EVERYBODY, day, EVERYBODY, EVERYBODY])


def _execute(statement: str, params: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def figures_until() -> datetime | None:
    """Up to when calls are in the figures."""
    return progress(NAME)
