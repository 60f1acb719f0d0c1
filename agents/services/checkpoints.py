"""The checkpoints of many runs in one transaction, each under its own worker's fencing token.

What the database refuses of one run is told to that run's worker and touches no other's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from django.db import connection, transaction

from agents.models import Run, Step
from agents.services.events import Happening, append_to_logs
from agents.services.leases import LEASE, CancelRequestedError, Lease, LeaseLostError
from agents.services.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What one worker wants written of one run: all of it, or nothing.

    ``outcome`` is the state in which it leaves the run, if it does; ``during`` are the states
    in which the run may be now.
    """

    lease: Lease
    steps: Sequence[Step] = ()
    news: Sequence[Happening] = field(default=(), repr=False)
    usage: dict[str, int | None] | None = None
    outcome: Outcome | None = None
    during: Sequence[str] = Run.WORKING


Refusal = LeaseLostError | CancelRequestedError
"""Why a checkpoint was not written."""

_PATIENCE = "SET LOCAL idle_in_transaction_session_timeout = '3s';"

# A run that its worker leaves has no lease. One that is handed over keeps its state, and a lease
# that has run out: the next worker finds it before those that wait.
_WRITE_RUNS = f"""
{_PATIENCE}
UPDATE agents_run AS run SET
    usage = coalesce(given.usage, run.usage),
    status = coalesce(given.status, run.status),
    output_text = coalesce(given.output_text, run.output_text),
    incomplete_reason = given.incomplete_reason,
    last_error = given.last_error,
    due_at = CASE WHEN given.status IS DISTINCT FROM 'queued' THEN run.due_at
             ELSE coalesce(given.due_at, statement_timestamp()) END,
    ended_at = CASE WHEN given.ends THEN statement_timestamp() END,
    lease_until = CASE WHEN given.hands_over THEN statement_timestamp()
                  WHEN given.status IS NOT NULL THEN NULL
                  ELSE statement_timestamp() + %s * interval '1 second' END
FROM jsonb_to_recordset(%s) AS given(
    id uuid, fence bigint, during text[], usage jsonb, status text, output_text text,
    incomplete_reason text, last_error jsonb, due_at timestamptz, ends boolean, hands_over boolean
)
WHERE run.id = given.id AND run.fence = given.fence AND run.status = ANY (given.during)
RETURNING run.id, run.status = 'cancelling'
"""  # noqa: S608 - no values

_WHY_NOT = """
SELECT run.id FROM agents_run AS run
JOIN unnest(%s::uuid[], %s::bigint[]) AS given(id, fence) USING (id, fence)
WHERE run.status = 'cancelling'
"""

COLUMNS = [each.attname for each in Step._meta.concrete_fields]  # noqa: SLF001 - documented
_CHANGED = ", ".join(f"{column} = excluded.{column}" for column in COLUMNS if column != "id")
_WRITE_STEPS = f"""
INSERT INTO agents_step ({", ".join(COLUMNS)})
SELECT {", ".join(COLUMNS)} FROM jsonb_populate_recordset(NULL::agents_step, %s)
ON CONFLICT (id) DO UPDATE SET {_CHANGED}
"""  # noqa: S608 - names of columns, no values


def write_checkpoints(checkpoints: Sequence[Checkpoint]) -> list[bool | Refusal]:
    """Write all that their workers may write; for each whether its run is being cancelled, or
    why it was not written.

    Each is of another run. Raises django.db.Error with nothing written.
    """
    with transaction.atomic():
        held = _write_runs(checkpoints)
        written = [each for each in checkpoints if each.lease.run_id in held]
        rows = [_row(step) for each in written for step in each.steps]
        if rows:
            with connection.cursor() as cursor:
                cursor.execute(_WRITE_STEPS, [_json(rows)])
        append_to_logs([(each.lease.run_id, news) for each in written for news in each.news])
        refused = [each.lease for each in checkpoints if each.lease.run_id not in held]
        cancelling = _cancelling(refused) if refused else frozenset()
    return [
        held[run_id] if (run_id := each.lease.run_id) in held else _refusal(run_id, cancelling)
        for each in checkpoints
    ]


def _write_runs(checkpoints: Sequence[Checkpoint]) -> dict[UUID, bool]:
    given = [_given(each) for each in checkpoints]
    given.sort(key=lambda row: str(row["id"]))
    with connection.cursor() as cursor:
        cursor.execute(_WRITE_RUNS, [LEASE, _json(given)])
        cursor.nextset()
        return dict(cursor.fetchall())


def _cancelling(leases: Sequence[Lease]) -> frozenset[UUID]:
    with connection.cursor() as cursor:
        ids, fences = [each.run_id for each in leases], [each.fence for each in leases]
        cursor.execute(_WHY_NOT, [ids, fences])
        return frozenset(run_id for (run_id,) in cursor.fetchall())


def _refusal(run_id: UUID, cancelling: frozenset[UUID]) -> Refusal:
    return CancelRequestedError() if run_id in cancelling else LeaseLostError()


def _given(checkpoint: Checkpoint) -> dict[str, Any]:
    lease, outcome = checkpoint.lease, checkpoint.outcome
    row: dict[str, Any] = {
        "id": lease.run_id,
        "fence": lease.fence,
        "during": list(checkpoint.during),
        "usage": checkpoint.usage,
    }
    if outcome is not None:
        row |= {
            "status": None if outcome.hands_over else outcome.status,
            "output_text": outcome.output_text,
            "incomplete_reason": outcome.incomplete_reason,
            "last_error": outcome.last_error,
            "due_at": outcome.due_at,
            "ends": outcome.is_final,
            "hands_over": outcome.hands_over,
        }
    return row


def _row(step: Step) -> dict[str, Any]:
    return {column: getattr(step, column) for column in COLUMNS}


def _json(rows: Sequence[dict[str, Any]]) -> str:
    return orjson.dumps(rows, default=str).decode()
