"""Doing a run again from one of its model calls: what happened before it is taken over."""

from __future__ import annotations

from functools import partial

from django.db import transaction
from uuid_utils.compat import uuid7

from agents.models import Run, Step
from agents.selectors import active_runs
from agents.services.doorbell import ring
from agents.services.events import append_events, entered
from tenants.caller import Caller
from tenants.errors import Conflict, InvalidInput
from tenants.services.audit import note
from tenants.services.limits import locked_run_limits, refuse_one_too_many

# What a new run takes over of the old one. Its thread it leaves: others may have gone on there.
_COPIED = (
    "tenant_id", "scope_id", "agent_id", "agent_version_id", "messages", "tools",
    "client_tools", "max_steps", "max_tool_calls", "max_tokens", "max_cost", "max_seconds",
    "final_answer", "operation", "prefer", "output_schema", "deltas",
)  # fmt: skip


@transaction.atomic
def retry_run(*, run: Run, caller: Caller, from_step: int | None = None) -> Run:
    """A new run that goes on from model call ``from_step`` of one that is over: its last one
    unless said otherwise, its beginning where it has none.

    Results of tools before it are kept, and nothing of that happens again. Raises Conflict for
    a run that is not over, InvalidInput for a step that is no model call.
    """
    if not run.is_over:
        raise Conflict("The run is not over.", code="run_not_over")
    kept = _steps_before(run, from_step)
    if any(step.status not in (Step.Status.COMPLETED, Step.Status.FAILED) for step in kept):
        raise Conflict("A step before it has no result.", code="step_without_result")
    limits = locked_run_limits(caller=caller)
    refuse_one_too_many(limits, caller=caller, active=partial(active_runs, run.tenant))
    new = Run(id=uuid7(), created_by=caller.user, **{name: getattr(run, name) for name in _COPIED})
    new.trace_id = str(new.id)
    new.fence = 1  # as of a run that was worked on: whoever claims it reads its steps
    new.metadata = {**run.metadata, "retry_of": str(run.id)}
    new.save(force_insert=True)
    Step.objects.bulk_create(_copied(step, new) for step in kept)
    append_events(new.id, entered(Run.Status.QUEUED, retry_of=str(run.id)))
    changes = {"from": from_step, "as": new.id}
    note("run.retried", run, tenant_id=run.tenant_id, changes=changes)
    transaction.on_commit(ring)
    return new


def _steps_before(run: Run, number: int | None) -> list[Step]:
    steps = list(run.steps.order_by("number"))
    calls = [step.number for step in steps if step.kind == Step.Kind.MODEL_CALL]
    if number is None:
        number = max(calls, default=0)
    elif number not in calls:
        raise InvalidInput("A run is retried from one of its model calls.", param="step")
    return [step for step in steps if step.number < number]


def _copied(step: Step, new: Run) -> Step:
    step.pk, step.run = uuid7(), new
    return step
