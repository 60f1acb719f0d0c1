"""Figures over many calls: from the days added up, and live where those do not reach.

A call is counted once: what lies in whole days and was added up comes from there; the parts
of days at both ends, and what came since, are counted as they stand in the journal.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

import orjson
from django.db import connection
from django.db.models import QuerySet

from journal.figures.adding_up import figures_until
from journal.figures.cells import ADDED, COLUMNS, COUNTED, MEASURED, NAMES, Cell, cells_of
from journal.models import EVERYBODY, Call, DailyFigures
from journal.moments import CLOCK_MARGIN, EPOCH, first_id_at
from journal.selectors import Reach, narrowed
from journal.text import stored

DAY = timedelta(days=1)
LIVE = 2 * DAY
"""Windows up to this long are counted live: quick enough, and by the row."""

_NAMES = ", ".join(NAMES)
QUERY = f"""
WITH measured AS (
    SELECT date_trunc(%s, ts AT TIME ZONE 'UTC') AS span, {MEASURED} FROM ({{calls}}) AS calls
), counted AS (
    SELECT span, {_NAMES}, bucket, cause, {COUNTED} FROM measured
    GROUP BY span, {_NAMES}, bucket, cause
)
SELECT span, {_NAMES}, {ADDED} FROM counted GROUP BY span, {_NAMES}
"""  # noqa: S608 - names of columns, no values


@dataclass(frozen=True)
class Period:
    """A half-open range of time; hours or days are what its course is told in."""

    since: datetime
    until: datetime
    interval: str = "day"


def last_days(days: int, until: datetime) -> Period:
    """That many days and the one that ``until`` is in: whole ones, since those are added up."""
    start = max(until, EPOCH + timedelta(days=days)) - timedelta(days=days)
    return Period(_midnight(start), until)


@dataclass(frozen=True)
class Statistics:
    """All figures added up, and the same by model, operation, key and span of time."""

    totals: Cell
    by_model: list[Cell]
    by_operation: list[Cell]
    by_key: list[Cell]
    course: list[Cell]


def statistics_of(reach: Reach, period: Period, **filters: str) -> Statistics:
    """The figures of what ``reach`` holds; ``filters`` are an operation and a model."""
    cells = _cells(reach, period, filters)
    # Days first: there are few names, and all but the course is added up from those.
    named = _grouped(cells, _names_within(reach))
    return Statistics(
        totals=next(iter(_grouped(named, lambda _: ())), Cell()),
        by_model=_grouped(named, lambda cell: cell.names[:1]),
        by_operation=_grouped(named, lambda cell: cell.names[2:3]),
        by_key=_grouped(named, lambda cell: cell.names[3:]),
        course=sorted(_grouped(cells, lambda cell: cell.span), key=lambda cell: str(cell.span)),
    )


def _names_within(reach: Reach) -> Callable[[Cell], tuple[str, ...]]:
    """Of the installation, the single keys are left out: see ``adding_up``."""
    if reach.tenant_id is not None:
        return lambda cell: cell.names
    return lambda cell: (*cell.names[:3], "", *cell.names[4:])


def _grouped(cells: Iterable[Cell], key: Callable[[Cell], Any]) -> list[Cell]:
    """Added up by ``key``, most used first."""
    groups: dict[Hashable, Cell] = {}
    for cell in cells:
        found = key(cell)
        if found not in groups:
            names = found if isinstance(found, tuple) else ()
            groups[found] = Cell(names=names, span=cell.span)
        groups[found].add(cell)
    return sorted(groups.values(), key=lambda cell: (-cell.calls, cell.names))


def _cells(reach: Reach, period: Period, filters: dict[str, str]) -> list[Cell]:
    calls = narrowed(reach.calls(), operation=filters.get("operation"), model=filters.get("model"))
    done = figures_until()
    if done is None or period.interval != "day" or period.until - period.since <= LIVE:
        return _live(calls, period.since, period.until, period.interval)
    first, last = _next_midnight(period.since), _midnight(period.until)
    if done + CLOCK_MARGIN <= period.until:  # what the last day holds by now is all before the end
        last = _next_midnight(done)
    return [
        *_live(calls, period.since, first, "day"),
        *_added_up(reach, first, last, filters),
        *_live(calls.filter(id__gte=first_id_at(done)), first, last, "day"),
        *_live(calls, last, period.until, "day"),
    ]


def _live(calls: QuerySet[Call], since: datetime, until: datetime, interval: str) -> list[Cell]:
    if since >= until:
        return []
    within = narrowed(calls, since=since, until=until).order_by().values(*COLUMNS)
    selected, params = within.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(QUERY.format(calls=selected), [interval, *params])
        rows = cursor.fetchall()
    return cells_of((*row[:-2], orjson.loads(row[-2]), orjson.loads(row[-1])) for row in rows)


def _added_up(reach: Reach, first: datetime, last: datetime, filters: dict[str, str]) -> list[Cell]:
    days = DailyFigures.objects.filter(
        tenant_id=reach.tenant_id or EVERYBODY,
        scope_id=reach.scope_id or EVERYBODY,
        day__gte=first.date(),
        day__lt=last.date(),
    )
    return [
        cell
        for day, cells in days.values_list("day", "cells")
        for cell in cells_of((datetime.combine(day, time()), *cell) for cell in cells)
        if _matches(cell, filters)
    ]


def _matches(cell: Cell, filters: dict[str, str]) -> bool:
    llm_name, model, operation = cell.names[:3]
    return ("operation" not in filters or operation == stored(filters["operation"])) and (
        "model" not in filters or stored(filters["model"]) in {llm_name, model}
    )


def _next_midnight(moment: datetime) -> datetime:
    """The midnight that is not before ``moment``."""
    return _midnight(moment + DAY - timedelta(microseconds=1))


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)
