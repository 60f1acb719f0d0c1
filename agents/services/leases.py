"""Who may write to a run: the worker with its newest fencing token, while its lease lasts.

Everything here is told by the database's clock, so that workers whose clocks differ agree.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

LEASE = 6.0
"""Seconds for which a worker that has died still holds its runs. Heartbeats renew it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to one run."""

    run_id: UUID
    fence: int


class LeaseLostError(Exception):
    """Another worker has claimed the run: whatever this one still has in hand is not written."""


class CancelRequestedError(Exception):
    """The run is being cancelled: nothing new may begin."""


_EXTEND = """
UPDATE agents_run AS run SET lease_until = statement_timestamp() + %s * interval '1 second'
FROM unnest(%s::uuid[], %s::bigint[]) AS held(id, fence)
WHERE run.id = held.id AND run.fence = held.fence AND run.status IN ('in_progress', 'cancelling')
RETURNING run.id, run.fence, run.status = 'cancelling'
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a heartbeat learned: the leases that are still held, and those of cancelled runs."""

    held: frozenset[Lease]
    cancelling: frozenset[Lease]


def extend(leases: Collection[Lease]) -> Standing:
    """Renew all these leases, those that are lost excepted, in one statement."""
    if not leases:
        return Standing(frozenset(), frozenset())
    ids, fences = zip(*((lease.run_id, lease.fence) for lease in leases), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_EXTEND, [LEASE, list(ids), list(fences)])
        found = [(Lease(run_id, fence), ends) for run_id, fence, ends in cursor.fetchall()]
    return Standing(
        frozenset(lease for lease, _ in found), frozenset(lease for lease, ends in found if ends)
    )
