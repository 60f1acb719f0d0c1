"""Schedules: defined by members for their scope, fired once per tick by however many clocks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from agents.cron import next_tick
from agents.models import Run, Schedule
from agents.selectors import agent_by_slug
from agents.services.creation import RunRequest, create_run
from agents.tool_registry import ToolRegistry
from llmbroker.errors import LimitExceededError
from tenants.caller import Caller
from tenants.context import scope_active
from tenants.errors import ApplicationError
from tenants.models import Scope, Tenant
from tenants.roles import RUNS_WRITE
from tenants.standing import still_allowed

SKIPPED = "Skipped: the run before it is not over."
BATCH = 100

Available = Callable[[Tenant], ToolRegistry]
"""The tools of a tenant's runs."""


def create_schedule(*, caller: Caller, values: dict[str, Any], now: datetime) -> Schedule:
    """A schedule of the caller's scope. Raises InvalidInput (cron, timezone), NotFound (agent)."""
    schedule = Schedule(tenant=caller.tenant, scope=caller.scope, created_by=caller.user, **values)
    return _planned(schedule, now)


@transaction.atomic
def update_schedule(*, schedule: Schedule, values: dict[str, Any], now: datetime) -> Schedule:
    """Change the given fields; the next tick is told anew. Raises InvalidInput."""
    schedule = Schedule.objects.select_for_update().get(pk=schedule.pk)
    for name, value in values.items():
        setattr(schedule, name, value)
    return _planned(schedule, now)


def delete_schedule(*, schedule: Schedule) -> None:
    """Remove a schedule; its runs stay."""
    schedule.delete()


def fire_due(*, available: Available, now: datetime) -> int:
    """Create the runs of schedules that are due, each once. Returns how many were looked at.

    One schedule at a time, so that what fails of one is no other's.
    """
    looked_at = 0
    while looked_at < BATCH and _fire_next(available, now):
        looked_at += 1
    return looked_at


@transaction.atomic
def _fire_next(available: Available, now: datetime) -> bool:
    schedule = (
        Schedule.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("tenant", "scope__user", "created_by")
        .filter(enabled=True, next_run_at__lte=now)
        .order_by("next_run_at")
        .first()
    )
    if schedule is None or schedule.next_run_at is None:
        return False
    caller = _caller(schedule)
    if not _may_run(caller):
        schedule.enabled = False
        schedule.last_problem = "Switched off: its person may not create runs any longer."
    else:
        with scope_active(caller.own_reach):
            schedule.last_problem = _begin(schedule, schedule.next_run_at, caller, available)
    schedule.last_run_at = now
    schedule.next_run_at = next_tick(schedule.cron, schedule.timezone, after=now)
    schedule.save()
    return True


def _begin(schedule: Schedule, tick: datetime, caller: Caller, available: Available) -> str:
    """Create the run of this tick; why there is none, if so."""
    if not schedule.allow_overlap and _unfinished(schedule):
        return SKIPPED
    request = RunRequest(**schedule.request, schedule=schedule.pk, scheduled_for=tick)
    try:
        with transaction.atomic():
            create_run(caller=caller, request=request, available=available(caller.tenant))
    except (ApplicationError, LimitExceededError) as error:
        return f"No run: {error}"[:500]
    return ""


def _unfinished(schedule: Schedule) -> bool:
    return Run.objects.filter(schedule=schedule).exclude(status__in=Run.TERMINAL).exists()


def _caller(schedule: Schedule) -> Caller:
    user = schedule.scope.user or schedule.created_by
    return Caller(schedule.tenant, schedule.scope, user, None, frozenset({RUNS_WRITE}))


def _may_run(caller: Caller) -> bool:
    """A person's schedules end with their membership; what is shared stays the tenant's."""
    if caller.scope.kind == Scope.Kind.SHARED:
        return True
    return bool(still_allowed([caller], RUNS_WRITE, now=timezone.now()))


def _planned(schedule: Schedule, now: datetime) -> Schedule:
    if schedule.request.get("agent"):
        agent_by_slug(schedule.tenant, schedule.request["agent"])
    # Clocks differ: a tick that another machine has fired already must not come again.
    after = max(now, schedule.last_run_at or now)
    schedule.next_run_at = next_tick(schedule.cron, schedule.timezone, after=after)
    schedule.save()
    return schedule
