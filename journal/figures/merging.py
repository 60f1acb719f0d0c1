"""Cells counted into the days they belong to, of three levels: scope, tenant, installation.

A day is one row that holds its cells as JSON: for a scope with eight calls a day, a row for
each cell takes sixteen times the room.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from journal.figures.cells import NAMES, SUMS

DAY = "tenant_id, scope_id, day"
CELL = (*NAMES, "calls", "errors", *SUMS, "latencies", "failures")
"""A cell's values in the order in which a day holds them; ``journal_cells`` unfolds them."""

COUNTS = ("calls", "errors", *SUMS)
_NAMES = ", ".join(NAMES)

# The days are looked up one by one, whatever the planner believes of the table's size:
# OFFSET 0 keeps it from joining the whole of it.
_COUNT_IN = f"""
WITH given AS MATERIALIZED ({{given}}), kept AS (
    SELECT {DAY}, {", ".join(f"cell.{name}" for name in CELL)}
    FROM (SELECT DISTINCT {DAY} FROM given) AS touched, LATERAL (
        SELECT cells FROM journal_dailyfigures AS days
        WHERE days.tenant_id = touched.tenant_id AND days.scope_id = touched.scope_id
            AND days.day = touched.day
        OFFSET 0
    ) AS days, journal_cells(days.cells) AS cell
), merged AS (
    SELECT {DAY}, {_NAMES}, {", ".join(f"sum({name}) AS {name}" for name in COUNTS)},
        journal_merged(latencies) AS latencies, journal_merged(failures) AS failures
    FROM (SELECT {DAY}, {", ".join(CELL)} FROM given UNION ALL SELECT * FROM kept) AS counted
    GROUP BY {DAY}, {_NAMES} HAVING sum(calls) <> 0
)
INSERT INTO journal_dailyfigures ({DAY}, cells)
SELECT {DAY}, jsonb_agg(jsonb_build_array({", ".join(CELL)})) FROM merged GROUP BY {DAY}
ON CONFLICT ({DAY}) DO UPDATE SET cells = excluded.cells
"""  # noqa: S608 - names of columns, no values


def count_in(given: str, params: Sequence[Any]) -> None:
    """Add the cells that the query ``given`` selects (DAY, CELL) to those of their days.

    A cell with negative counts is taken away.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_IN.format(given=given), params)
