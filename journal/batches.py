"""Many rows in one statement: intents inserted, outcomes written over them.

Rows travel as one JSON array, which PostgreSQL reads by the table's own row type; the spool
keeps the same form. They are sorted by id, so that two writers of the same rows cannot
deadlock.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import Any, TypeAlias

import orjson
import psycopg

from journal.connections import is_away
from journal.models import INSTALLATION, Call
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
    with connection.transaction() if intents and outcomes else nullcontext():
        if intents:
            _execute(connection, _INSERT_INTENTS, intents)
        if outcomes and not (len(outcomes) == 1 and _close_one(connection, outcomes[0])):
            _execute(connection, _WRITE_OUTCOMES, outcomes)


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
