"""What workers do when the bell rings."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from agents.selectors import reach_of_run
from agents.services.advance import advance_run
from agents.services.connections import release_connection
from agents.services.deliveries import claim_due, record
from agents.services.doorbell import ADVANCE_RUN
from agents.services.mcp_servers import fresh_tools_of_run
from agents.services.reaping import reap_runs
from agents.services.retention import delete_old_runs
from agents.services.schedules import fire_due
from agents.services.webhook_outbox import DELIVER
from agents.tool_sources.catalog import TenantTools
from agents.webhook_sending import send_all
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


@shared_task(name=DELIVER, ignore_result=True)
def deliver_webhooks() -> None:
    """Send what is due, batch by batch; rung for at once, and by the beat for what must wait."""
    with all_tenants("webhook deliveries", routine=True):
        while due := claim_due(now=timezone.now()):
            release_connection()
            record(send_all(due), now=timezone.now())


@shared_task(name="agents.fire_schedules", ignore_result=True)
def fire_schedules() -> None:
    """Create the runs that are due by the clock; several beats at once create each once."""
    with all_tenants("schedules", routine=True):
        fire_due(available=TenantTools, now=timezone.now())


@shared_task(name="agents.retention", ignore_result=True)
def retention() -> None:
    """Delete the runs that tenants do not keep any longer."""
    with all_tenants("the retention of runs"):
        delete_old_runs(now=timezone.now())
