"""Calls added up into days, in the background and once each.

The figures hold every call whose id is of a moment before their progress. They follow now at
a distance within which every call has ended or counts as lost. What still comes later (from
the spool of a process that was away) marks its day stale, and that day is added up again.
"""

from datetime import UTC, datetime, time, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from journal.figures.cells import ADDED, COUNTED, MEASURED, NAMES
from journal.figures.merging import CELL, COUNTS, count_in
from journal.figures.strides import follow, progress
from journal.figures.sweeping import LOST, sweep
from journal.models import EVERYBODY, Call, Progress, StaleDay
from journal.moments import EPOCH, earliest_id, first_id_at, latest_id
from journal.selectors import kept_since
from llmbroker.models import CallStatus

NAME = "figures"
STEP = timedelta(minutes=10)
"""A day's row is written anew at most once in this time."""

_NAMES = ", ".join(("day", *NAMES))
# Keys are told apart within a tenant. Of the installation they would undo all adding up, since
# most belong to one scope.
_WITHOUT_KEYS = _NAMES.replace(", key_id", "")
_KEYS_OR_NONE = _NAMES.replace("key_id", "coalesce(key_id, '') AS key_id")
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
SELECT coalesce(tenant_id, '{EVERYBODY}') AS tenant_id,
    coalesce(scope_id, '{EVERYBODY}') AS scope_id,
    {_KEYS_OR_NONE}, {ADDED}
FROM counted GROUP BY tenant_id, scope_id, {_NAMES}
"""  # noqa: S608 - names of columns, no values
_SCOPES = f"(tenant_id, scope_id, {_NAMES}, bucket, cause)"
_TENANTS = f"(tenant_id, {_NAMES}, bucket, cause)"
_ALL = f"({_WITHOUT_KEYS}, bucket, cause)"

OF_STRETCH = _CALLS.format(where="id >= %s AND id < %s", levels=f"{_SCOPES}, {_TENANTS}, {_ALL}")
_OF_DAY = _CALLS.format(
    where="scope_id = %s AND id >= %s AND id < %s AND ts >= %s AND ts < %s", levels=_SCOPES
)
_CELL = ", ".join(CELL)
_OF_ALL = f"""
SELECT '{EVERYBODY}'::uuid AS tenant_id, '{EVERYBODY}'::uuid AS scope_id,
    day, {_CELL.replace("key_id", "'' AS key_id")}
"""
OF_TENANT_SINCE = f"""
{_OF_ALL} FROM ({_CALLS.format(where="tenant_id = %s AND id >= %s", levels=_SCOPES)}) AS calls
"""
# What a scope's day has become, less what it was: counted into all three levels, so that the
# totals keep what they hold of calls that are gone.
CHANGE_OF_DAY = f"""
WITH now AS ({_OF_DAY}), change AS (
    SELECT tenant_id, scope_id, day, {_CELL} FROM now
    UNION ALL
    SELECT tenant_id, scope_id, day, {", ".join(NAMES)}, {", ".join(f"-{name}" for name in COUNTS)},
        journal_negated(latencies), journal_negated(failures)
    FROM journal_dailyfigures, journal_cells(cells)
    WHERE tenant_id = %s AND scope_id = %s AND day = %s
)
SELECT tenant_id, scope_id, day, {_CELL} FROM change
UNION ALL
SELECT tenant_id, '{EVERYBODY}', day, {_CELL} FROM change
UNION ALL
{_OF_ALL} FROM change
"""  # noqa: S608 - names of columns, no values


def add_up(*, now: datetime, strides: int = 24 * 400) -> None:
    """Bring the figures up to what is settled at ``now``, stale days included."""
    settled = sweep(now=now)
    if settled is not None:
        until = settled - (settled - EPOCH) % STEP
        follow(NAME, _add_stretch, until=until, strides=strides)
    add_stale_days()


def add_stale_days(**whose: UUID) -> None:
    """Add up again the days (of ``tenant_id``, if one is given) that got a call late."""
    for stale in list(StaleDay.objects.filter(**whose).order_by("id")):
        _add_again(stale)


def _add_stretch(since: datetime, until: datetime) -> None:
    count_in(OF_STRETCH, [first_id_at(since), first_id_at(until)])


@transaction.atomic
def _add_again(stale: StaleDay) -> None:
    """Make the figures of a scope's day anew, and change the totals by the difference."""
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
    day = (tenant_id, stale.scope_id, stale.day)
    count_in(CHANGE_OF_DAY, [stale.scope_id, *ids, start, end, *day])


def keep_counts(tenant_id: UUID) -> None:
    """Count a tenant's calls that are in no figures yet into the installation's totals.

    For who deletes them in the same transaction: until it ends nobody else adds up.
    """
    done = Progress.objects.select_for_update().filter(name=NAME).first()
    since = EPOCH if done is None else done.until
    count_in(OF_TENANT_SINCE, [tenant_id, first_id_at(since)])


def figures_until() -> datetime | None:
    """Up to when calls are in the figures."""
    return progress(NAME)
