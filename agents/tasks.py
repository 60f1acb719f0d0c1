"""What workers do when the bell rings."""

from __future__ import annotations

import functools
import os
from functools import partial

from celery import shared_task
from django.conf import settings

from agents.services.closing import expire_runs
from agents.services.doorbell import ADVANCE_RUNS
from agents.services.mcp_servers import fresh_tools_of_run
from agents.services.reaping import reap_runs
from agents.services.worker import Pace, RunWorker
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
    """Ring for runs that nobody works on, and end those that have waited too long; the beat
    schedule calls this every few seconds."""
    with all_tenants("runs without a worker", routine=True):
        expire_runs()
        reap_runs()
