"""Figures over many calls, in one pass over them."""

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from journal.models import Call
from llmbroker.models import USAGE_FIELDS

# GROUPING says which columns a row is not grouped by: 1 by model, 2 by operation, 3 all calls.
QUERY = """
SELECT GROUPING(llm_name, operation), llm_name, operation,
       count(*) AS calls,
       count(*) FILTER (WHERE status NOT IN ('started', 'ok', 'superseded')) AS errors,
       {sums},
       percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY latency_ms)
           FILTER (WHERE status = 'ok') AS latency
FROM ({calls}) AS calls
GROUP BY GROUPING SETS ((llm_name), (operation), ())
ORDER BY calls DESC, llm_name, operation
"""
BY_MODEL, BY_OPERATION, ALL = 1, 2, 3


@dataclass(frozen=True)
class Figures:
    """Counts and sums; a sum is None while no call says a figure. Latency is that of answers."""

    llm_name: str | None
    operation: str | None
    calls: int
    errors: int
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None


@dataclass(frozen=True)
class Statistics:
    """The figures of all calls, and of each model and operation, most used first."""

    totals: Figures
    by_model: list[Figures]
    by_operation: list[Figures]


def statistics_of(calls: QuerySet[Call]) -> Statistics:
    """The figures of ``calls``."""
    groups: dict[int, list[Figures]] = {ALL: [], BY_MODEL: [], BY_OPERATION: []}
    for grouping, *figures, latency in _rows(calls):
        groups[grouping].append(Figures(*figures, *(latency or (None, None))))
    return Statistics(groups[ALL][0], groups[BY_MODEL], groups[BY_OPERATION])


def _rows(calls: QuerySet[Call]) -> list[tuple[Any, ...]]:
    columns = ("llm_name", "operation", "status", "latency_ms", *USAGE_FIELDS)
    selected, params = calls.order_by().values(*columns).query.sql_with_params()
    sums = ", ".join(f"sum({name})" for name in USAGE_FIELDS)
    with connection.cursor() as cursor:
        cursor.execute(QUERY.format(sums=sums, calls=selected), params)
        return list(cursor.fetchall())
