"""Writing a run's log. Every type of event is made here.

run.<state>        {} or {reason}
step.started       {step, kind}
step.completed     {step, kind}
message.completed  {step}                           the final answer; read with its text
tool_call.created  {step, tool_call_id, name}
tool_call.output   {step, tool_call_id, name, outcome}
usage.updated      {usage}                          of the whole run so far
error              {code, message}
"""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from agents.models import Event, Run, Step
from agents.services.outcomes import Outcome
from agents.services.webhook_outbox import queue_deliveries
from agents.streams.publishing import publish

Happening = tuple[str, dict[str, Any]]
"""An event's type and data."""


def append_events(run_id: UUID, *happenings: Happening) -> None:
    """Add to the log of a run whose row the caller's transaction has locked.

    Webhooks are to tell of them too. Whoever listens is told once the transaction is committed.
    """
    last = Event.objects.filter(run_id=run_id).aggregate(last=Max("sequence_number"))["last"]
    events = Event.objects.bulk_create(
        Event(run_id=run_id, sequence_number=number, type=kind, data=data)
        for number, (kind, data) in enumerate(happenings, start=(last or 0) + 1)
    )
    queue_deliveries(run_id, events)
    transaction.on_commit(partial(publish, run_id, events))


def began(step: Step) -> Happening:
    """A step was reserved."""
    return "step.started", {"step": step.number, "kind": step.kind}


def ended(step: Step) -> Happening:
    """A step was recorded."""
    return "step.completed", {"step": step.number, "kind": step.kind}


def replied(step: Step, asked: list[Step], usage: dict[str, int | None] | None) -> list[Happening]:
    """A model asked for tools, or gave its final answer."""
    news = [ended(step)]
    if usage is not None:
        news.append(("usage.updated", {"usage": usage}))
    if not asked:
        news.append(("message.completed", {"step": step.number}))
    return news + [("tool_call.created", _tool_call(each)) for each in asked]


def answered(step: Step) -> list[Happening]:
    """A tool call has its result."""
    return [("tool_call.output", {**_tool_call(step), "outcome": step.outcome}), ended(step)]


def entered(status: Run.Status, **data: str) -> Happening:
    """A run came into another state."""
    return f"run.{status.value}", data


def left(outcome: Outcome) -> list[Happening]:
    """A worker left a run."""
    news: list[Happening] = [("error", dict(outcome.last_error))] if outcome.last_error else []
    reason = outcome.incomplete_reason
    return [*news, entered(outcome.status, **({"reason": reason.value} if reason else {}))]


def _tool_call(step: Step) -> dict[str, Any]:
    return {"step": step.number, "tool_call_id": step.tool_call_id, "name": step.name}
