"""Many rows in one statement: intents inserted, outcomes written over them.

Rows travel as one JSON array, which PostgreSQL reads by the table's own row type; the spool
keeps the same form. They are sorted by id, so that two writers of the same rows cannot
deadlock.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import Any, TypeAlias
from uuid import UUID

import orjson
import psycopg
from django.conf import settings

from journal.connections import is_away
from journal.models import INSTALLATION, Call
from journal.moments import moment_of
from llmbroker.errors import LLMBrokerError

Row: TypeAlias = dict[str, Any]
"""A call's columns by name, without the tenant: that follows from the scope as it is written."""

KEY = ("id", "scope_id")
COLUMNS = [
    field.attname
    for field in Call._meta.concrete_fields  # noqa: SLF001 - documented by Django
    if field.attname != "tenant_id"
]

_GIVEN = "json_populate_recordset(NULL::journal_call, %s)"
_INSERT = f"""
INSERT INTO journal_call (tenant_id, {", ".join(COLUMNS)})
SELECT CASE given.scope_id WHEN '{INSTALLATION}' THEN given.scope_id ELSE scope.tenant_id END,
       {", ".join(f"given.{column}" for column in COLUMNS)}
FROM {{given}} AS given LEFT JOIN tenants_scope AS scope ON scope.id = given.scope_id
ON CONFLICT DO NOTHING
"""  # noqa: S608 - names of columns, no values
_INSERT_INTENTS = _INSERT.format(given=_GIVEN)
_OUTCOME = ", ".join(f"{column} = given.{column}" for column in COLUMNS if column not in KEY)

# What has no intent to close is inserted; what is closed already conflicts, and stays as it is.
_WRITE_OUTCOMES = f"""
WITH given AS MATERIALIZED (SELECT * FROM {_GIVEN}), closed AS (
    UPDATE journal_call AS call SET {_OUTCOME} FROM given
    WHERE call.id = given.id AND call.scope_id = given.scope_id AND call.status = 'started'
    RETURNING call.id
)
{_INSERT.format(given="(SELECT * FROM given WHERE id NOT IN (SELECT id FROM closed))")}
"""  # noqa: S608

# One row alone names its partition, and is written in a third of the time.
_CLOSE_ONE = f"""
UPDATE journal_call AS call SET {_OUTCOME}
FROM json_populate_record(NULL::journal_call, %s) AS given
WHERE call.id = %s AND call.scope_id = %s AND call.status = 'started'
"""  # noqa: S608


# Days may have been added up already (journal.figures): those of late rows are to be again.
_MARK_STALE = f"""
INSERT INTO journal_staleday (tenant_id, scope_id, day)
SELECT DISTINCT call.tenant_id, given.scope_id, (given.ts AT TIME ZONE 'UTC')::date
FROM {_GIVEN} AS given JOIN journal_call AS call USING (id, scope_id) ORDER BY 2, 3
ON CONFLICT (scope_id, day) DO UPDATE SET day = excluded.day
"""  # noqa: S608 - the update locks the mark, so that nobody takes it before the row is there


class Kind(Enum):
    """What a row is to its call."""

    INTENT = "intent"
    OUTCOME = "outcome"


@dataclass(frozen=True, slots=True)
class Record:
    """One row to be written."""

    kind: Kind
    row: Row


def record_of(kind: Kind, call: Call) -> Record:
    """An unsaved row as it travels."""
    return Record(kind, {column: getattr(call, column) for column in COLUMNS})


def write(connection: psycopg.Connection[Any], records: Sequence[Record]) -> None:
    """Write all, durable together when this returns; intents first."""
    intents = [record.row for record in records if record.kind is Kind.INTENT]
    outcomes = [record.row for record in records if record.kind is Kind.OUTCOME]
    late = [record.row for record in records if _is_late(record.row)]
    with connection.transaction() if late or (intents and outcomes) else nullcontext():
        if intents:
            _execute(connection, _INSERT_INTENTS, intents)
        if outcomes and not (len(outcomes) == 1 and _close_one(connection, outcomes[0])):
            _execute(connection, _WRITE_OUTCOMES, outcomes)
        if late:
            _execute(connection, _MARK_STALE, late)


def write_possible(
    connection: psycopg.Connection[Any], records: Sequence[Record]
) -> list[LLMBrokerError | None]:
    """Write all that can be; for each record None, or why the database refuses it.

    One refused row must not take its neighbours with it: then each is written by itself.
    Raises only where the database is away.
    """
    if not records:
        return []
    try:
        write(connection, records)
    except psycopg.Error as error:
        if is_away(error):
            raise
        if len(records) == 1:
            return [_refusal(records[0].row, error)]
    else:
        return [None] * len(records)
    return [fault for record in records for fault in write_possible(connection, [record])]


def _is_late(row: Row) -> bool:
    """Whether the figures may have passed this row's moment: they lag, and we allow for clocks."""
    lag = settings.JOURNAL_LOST_AFTER_SECONDS / 2
    return moment_of(UUID(str(row["id"]))).timestamp() < time.time() - lag


def _execute(connection: psycopg.Connection[Any], statement: str, rows: list[Row]) -> None:
    rows.sort(key=itemgetter(*KEY))
    connection.execute(statement, [orjson.dumps(rows).decode()])


def _close_one(connection: psycopg.Connection[Any], row: Row) -> bool:
    given = [orjson.dumps(row).decode(), row["id"], row["scope_id"]]
    return connection.execute(_CLOSE_ONE, given).rowcount == 1


def _refusal(row: Row, error: psycopg.Error) -> LLMBrokerError:
    """Without the database's own words, which quote the row."""
    if isinstance(error, psycopg.errors.NotNullViolation):
        return LLMBrokerError(f"there is no scope {row['scope_id']}, or no longer")
    return LLMBrokerError(f"the journal cannot hold call {row['id']}: {type(error).__name__}")
