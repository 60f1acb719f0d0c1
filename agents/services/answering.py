"""What a run waits for, given: decisions about tool calls, and outputs of the client's tools.

Some may be given now and the rest later; the run goes on when nothing is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from agents.models import Run, Step
from agents.services.doorbell import ring
from agents.services.events import Happening, answered, append_events, decided, entered
from llmbroker import ToolStatus
from llmbroker.text import storable, storable_json
from llmbroker.tools.execution import as_text
from llmbroker.tools.outcomes import failure
from tenants.errors import Conflict, InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What somebody decided about one call. ``edit`` runs it with other ``arguments``; the
    ``message`` of a rejection is told to the model."""

    tool_call_id: str
    decision: Literal["approve", "edit", "reject"]
    arguments: dict[str, Any] | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What became of one call that somebody else has run."""

    tool_call_id: str
    output: str
    failed: bool = False


_UNDECIDED = (Step.Needs.APPROVAL, Step.Needs.OUTCOME)
_WITHOUT_OUTPUT = (Step.Needs.OUTPUT, Step.Needs.OUTCOME)


@transaction.atomic
def decide(*, run_id: UUID, decisions: Sequence[Decision]) -> Run:
    """Approve, edit or reject calls. Of a call of unknown outcome an approval says that it may be
    made again, and a rejection that it is not to be.

    Raises Conflict (the run waits for nothing) and InvalidInput (no such call waits).
    """
    run = _waiting(run_id)
    news: list[Happening] = []
    for given in decisions:
        step = _step(run, given.tool_call_id, _UNDECIDED)
        step.decision = {"decision": given.decision, "message": storable(given.message)}
        step.needs, step.attempts, step.status = None, 0, Step.Status.QUEUED
        news.append(decided(step))
        if given.decision == "edit":
            step.arguments = storable_json(given.arguments or {})
        if given.decision == "reject":
            said = f"denied: {given.message}" if given.message else "denied"
            _end(step, failure(step.name or "", said), ToolStatus.DENIED)
            news += answered(step)
        step.save()
    return _going_on(run, news)


@transaction.atomic
def submit_tool_outputs(*, run_id: UUID, outputs: Sequence[ToolOutput]) -> Run:
    """Take outputs of calls that the client has run, or word of what became of one.

    Raises Conflict and InvalidInput like ``decide``.
    """
    run = _waiting(run_id)
    news: list[Happening] = []
    for given in outputs:
        step = _step(run, given.tool_call_id, _WITHOUT_OUTPUT)
        text = as_text(given.output)
        if given.failed:
            _end(step, failure(step.name or "", text), ToolStatus.FAILED)
        else:
            _end(step, text, ToolStatus.SUCCESS)
        step.save()
        news += answered(step)
    return _going_on(run, news)


def _waiting(run_id: UUID) -> Run:
    run = Run.objects.select_for_update().get(id=run_id)
    if run.status != Run.Status.REQUIRES_ACTION:
        raise Conflict(f"The run is {run.status}, and waits for nothing.", code="not_waiting")
    return run


def _step(run: Run, tool_call_id: str, needs: Sequence[str]) -> Step:
    step = run.steps.filter(tool_call_id=tool_call_id, needs__in=needs).first()
    if step is None:
        raise InvalidInput(f"No call {tool_call_id} waits for this.", param="tool_call_id")
    return step


def _end(step: Step, result: str, outcome: ToolStatus) -> None:
    worked = outcome is ToolStatus.SUCCESS
    step.status = Step.Status.COMPLETED if worked else Step.Status.FAILED
    step.result, step.outcome, step.needs = result, outcome, None
    step.ended_at = timezone.now()


def _going_on(run: Run, news: Sequence[Happening]) -> Run:
    if not run.steps.filter(needs__isnull=False).exists():
        run.status = Run.Status.QUEUED
        Run.objects.filter(id=run.id).update(status=run.status, due_at=Now())
        news = [*news, entered(run.status)]
        transaction.on_commit(ring)
    append_events(run.id, *news)
    return run
