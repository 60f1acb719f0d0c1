"""What workers do when the bell rings."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from celery import shared_task

from agents.selectors import reach_of_run
from agents.services.advance import advance_run
from agents.services.doorbell import ADVANCE_RUN
from agents.services.mcp_servers import fresh_tools_of_run
from agents.services.reaping import reap_runs
from tenants.context import all_tenants, scope_active
from tenants.runtime import current_broker


@shared_task(name=ADVANCE_RUN, ignore_result=True)
def advance(run_id: str) -> None:
    """Work on one run, if nobody does."""
    broker = current_broker()
    reach = reach_of_run(UUID(run_id))
    if reach is not None:
        with scope_active(reach):
            advance_run(
                run_id=UUID(run_id), broker=broker, tools=partial(fresh_tools_of_run, broker=broker)
            )


@shared_task(name="agents.reap_runs", ignore_result=True)
def reap() -> None:
    """Ring for runs that nobody works on; the beat schedule calls this every few seconds."""
    with all_tenants("runs without a worker", routine=True):
        reap_runs()
