"""What workers do when the bell rings."""

from __future__ import annotations

import functools
import os
from functools import partial

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from agents.services.closing import expire_runs
from agents.services.connections import release_connection
from agents.services.deliveries import claim_due, record
from agents.services.doorbell import ADVANCE_RUNS
from agents.services.mcp_servers import fresh_tools_of_run
from agents.services.reaping import reap_runs
from agents.services.retention import delete_old_runs
from agents.services.schedules import fire_due
from agents.services.threads import start_held
from agents.services.webhook_outbox import DELIVER
from agents.services.worker import Pace, RunWorker
from agents.tool_sources.catalog import TenantTools
from agents.webhook_sending import send_all
from tenants.context import all_tenants
from tenants.runtime import current_broker


@functools.cache
def run_worker() -> RunWorker:
    """The one of this process, which begins with its ``start`` or ``wake``."""
    broker = current_broker()
    pace = Pace(
        slots=settings.RUNS_AT_ONCE, slice=settings.RUN_SLICE, hand_over=settings.RUN_HAND_OVER
    )
    return RunWorker(broker, partial(fresh_tools_of_run, broker=broker), pace=pace)


os.register_at_fork(after_in_child=run_worker.cache_clear)


@shared_task(name=ADVANCE_RUNS, ignore_result=True)
def advance_runs() -> None:
    """There are runs: this process's worker takes what it has room for."""
    run_worker().wake()


@shared_task(name="agents.reap_runs", ignore_result=True)
def reap() -> None:
    """Ring for runs that nobody works on, start those that threads have left behind, and end
    those that have waited too long; the beat schedule calls this every few seconds."""
    with all_tenants("runs without a worker", routine=True):
        expire_runs()
        start_held()
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
