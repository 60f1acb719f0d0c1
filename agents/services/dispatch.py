"""Which runs a worker takes next: told by SQL over all tenants, so that none crowds out another.

Tenants take turns by weight, counting what they have at work anywhere; within a tenant who came
first goes first. Claims are made one at a time (an advisory lock), which keeps caps exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from django.db import connection, transaction

from agents.models import Run, Step
from agents.services.events import append_to_logs, entered
from agents.services.leases import LEASE, Lease

_ONE_AT_A_TIME = 0x72756E73
"""The advisory lock's key ("runs")."""

# What a client that stops in the middle may hold up, for all others.
_PATIENCE = "SET LOCAL idle_in_transaction_session_timeout = '3s'"

_BUSY = """
busy AS (
    SELECT tenant_id, scope_id, count(*) AS runs FROM agents_run
    WHERE status IN ('in_progress', 'cancelling') AND lease_until > statement_timestamp()
    GROUP BY 1, 2
),
busy_tenant AS (SELECT tenant_id, sum(runs) AS runs FROM busy GROUP BY 1)
"""

# The tenants with a queue, found by skipping from one to the next in the index.
_WAITING = """
waiting(tenant_id) AS (
    (SELECT tenant_id FROM agents_run WHERE status = 'queued' ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT run.tenant_id FROM agents_run AS run
        WHERE run.status = 'queued' AND run.tenant_id > waiting.tenant_id
        ORDER BY run.tenant_id LIMIT 1
    ) FROM waiting WHERE waiting.tenant_id IS NOT NULL
)
"""

_CAPS = """
cap AS (
    SELECT tenant_id, scope_id, value FROM tenants_limit
    WHERE kind = 'executing_runs' AND token_id IS NULL
),
full_scope AS (
    SELECT cap.scope_id FROM cap JOIN busy USING (tenant_id, scope_id) WHERE busy.runs >= cap.value
    UNION ALL SELECT scope_id FROM cap WHERE scope_id IS NOT NULL AND value = 0
)
"""

# ``turn`` is how often the tenant would have been served with this run: the lowest go first.
_NEXT = f"""
WITH RECURSIVE {_WAITING}, {_BUSY}, {_CAPS}, head AS (
    SELECT run.*, tenant.run_weight AS weight, coalesce(busy_tenant.runs, 0) AS tenant_busy
    FROM waiting
    JOIN tenants_tenant AS tenant ON tenant.id = waiting.tenant_id
    LEFT JOIN busy_tenant ON busy_tenant.tenant_id = waiting.tenant_id
    CROSS JOIN LATERAL (
        SELECT id, tenant_id, scope_id, due_at FROM agents_run
        WHERE status = 'queued' AND due_at <= statement_timestamp() AND history_index IS NULL
          AND tenant_id = waiting.tenant_id AND scope_id NOT IN (SELECT scope_id FROM full_scope)
        ORDER BY due_at LIMIT %(slots)s
    ) AS run
), numbered AS (
    SELECT head.*, row_number() OVER (PARTITION BY tenant_id ORDER BY due_at) AS number,
           row_number() OVER (PARTITION BY scope_id ORDER BY due_at) AS scope_number
    FROM head
), allowed AS (
    SELECT numbered.id, (tenant_busy + number) / weight::float AS turn, due_at FROM numbered
    LEFT JOIN cap AS tenant_cap
        ON tenant_cap.tenant_id = numbered.tenant_id AND tenant_cap.scope_id IS NULL
    LEFT JOIN cap AS scope_cap ON scope_cap.scope_id = numbered.scope_id
    LEFT JOIN busy ON busy.scope_id = numbered.scope_id
    LEFT JOIN jsonb_each_text(%(held)s) AS held ON held.key::uuid = numbered.tenant_id
    WHERE (tenant_cap.value IS NULL OR tenant_busy + number <= tenant_cap.value)
      AND (scope_cap.value IS NULL OR coalesce(busy.runs, 0) + scope_number <= scope_cap.value)
      AND number + coalesce(held.value::int, 0) <= %(share)s
), lost AS (
    SELECT id, 0::float AS turn, lease_until AS due_at FROM agents_run
    WHERE status IN ('in_progress', 'cancelling')
      AND (lease_until IS NULL OR lease_until <= statement_timestamp())
), chosen AS (
    SELECT id FROM (SELECT * FROM allowed UNION ALL SELECT * FROM lost) AS any_run
    ORDER BY turn, due_at LIMIT %(slots)s
)
"""  # noqa: S608 - no values

_TAKE = """
UPDATE agents_run AS run SET
    fence = run.fence + 1, status = replace(run.status, 'queued', 'in_progress'),
    lease_until = statement_timestamp() + %(lease)s * interval '1 second',
    started_at = coalesce(run.started_at, statement_timestamp())
FROM (
    SELECT id, status FROM agents_run WHERE id IN (SELECT id FROM chosen) AND {takeable}
    FOR UPDATE SKIP LOCKED
) AS before
WHERE run.id = before.id
RETURNING run.id, run.fence, before.status = 'queued'
"""

_TAKEABLE = """(
    (status = 'queued' AND due_at <= statement_timestamp() AND history_index IS NULL)
    OR (status IN ('in_progress', 'cancelling')
        AND (lease_until IS NULL OR lease_until <= statement_timestamp()))
)"""

_CLAIM = (
    f"{_PATIENCE}; SELECT pg_advisory_xact_lock({_ONE_AT_A_TIME});"
    + _NEXT
    + _TAKE.format(takeable=_TAKEABLE)
)
_CLAIM_ONE = "WITH chosen AS (SELECT %(id)s::uuid AS id)" + _TAKE.format(takeable=_TAKEABLE)

_QUEUES = f"""
WITH RECURSIVE {_WAITING}, {_BUSY}
SELECT tenant.id, tenant.run_weight, coalesce(busy_tenant.runs, 0) FROM waiting
JOIN tenants_tenant AS tenant ON tenant.id = waiting.tenant_id
LEFT JOIN busy_tenant ON busy_tenant.tenant_id = tenant.id
WHERE EXISTS (
    SELECT FROM agents_run
    WHERE status = 'queued' AND tenant_id = tenant.id AND due_at <= statement_timestamp()
      AND history_index IS NULL
)
"""  # noqa: S608 - no values


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that is this worker's now, and what is recorded of it so far."""

    run: Run
    lease: Lease
    steps: Sequence[Step] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Queue:
    """A tenant that has a run due: its weight, and how many of its runs are at work anywhere."""

    tenant_id: UUID
    weight: int
    busy: int


def claim_runs(*, slots: int, held: Mapping[UUID, int], share: int) -> list[Claimed]:
    """Take up to ``slots`` runs that are due or have lost their worker.

    ``held`` counts what this worker has of each tenant already; of one tenant it takes no more
    than ``share`` in all, so that there is always room for another's.
    """
    counts = orjson.dumps({str(tenant): runs for tenant, runs in held.items()}).decode()
    given = {"slots": slots, "held": counts, "share": share, "lease": LEASE}
    return _taken(_CLAIM, given, last=2)


def claim(run_id: UUID) -> Claimed | None:
    """Take one run, out of its turn; None if it is not due or somebody else's."""
    return next(iter(_taken(_CLAIM_ONE, {"id": run_id, "lease": LEASE})), None)


def queues() -> list[Queue]:
    """The tenants that have a run due."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES)
        return [Queue(*row) for row in cursor.fetchall()]


def _taken(statement: str, given: dict[str, Any], *, last: int = 0) -> list[Claimed]:
    """Run ``statement``, whose ``last`` result are the claims, and read what was claimed."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(statement, given)
            for _ in range(last):
                cursor.nextset()
            rows = cursor.fetchall()
        append_to_logs(
            [(run_id, entered(Run.Status.IN_PROGRESS)) for run_id, _, begins in rows if begins]
        )
    return _read({run_id: Lease(run_id, fence) for run_id, fence, _ in rows})


def _read(leases: dict[UUID, Lease]) -> list[Claimed]:
    if not leases:
        return []
    steps: dict[UUID, list[Step]] = defaultdict(list)
    worked_on = [lease.run_id for lease in leases.values() if lease.fence > 1]
    if worked_on:
        for step in Step.objects.filter(run_id__in=worked_on).order_by("run_id", "number"):
            steps[step.run_id].append(step)
    runs = Run.objects.filter(id__in=leases)
    return [Claimed(run, leases[run.id], steps[run.id]) for run in runs]
