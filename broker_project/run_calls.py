"""Joins runs with the journal: a run's calls by the run's id, in its own scope."""

from __future__ import annotations

from agents.models import Run
from agents.run_calls import RunCall
from journal.models import Call

MOST = 500


def calls_of_run(run: Run) -> list[RunCall]:
    """The attempts that the journal holds of a run, oldest first."""
    calls = Call.objects.filter(tenant_id=run.tenant_id, scope_id=run.scope_id, run=str(run.pk))
    return [
        RunCall(
            call_id=call.pk,
            step=call.step,
            started_at=call.ts,
            llm_name=call.llm_name,
            status=call.status,
            latency_ms=call.latency_ms,
            tokens=call.total_tokens,
            cost_micros=call.cost_micros,
            paid_by=call.key_source,
        )
        for call in calls.order_by("id")[:MOST]
    ]
