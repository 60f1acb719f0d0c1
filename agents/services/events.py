"""Writing a run's log. Every type of event is made here.

run.<state>        {} or {reason}
step.started       {step, kind}
step.completed     {step, kind}
message.completed  {step}                           the final answer; read with its text
message.rejected   {step}                           an answer that the model is to mend
tool_call.created  {step, tool_call_id, name}
tool_call.output   {step, tool_call_id, name, outcome}
usage.updated      {usage}                          of the whole run so far
approval.requested {step, tool_call_id, name}       a call waits for somebody's word
approval.resolved  {step, tool_call_id, name, decision}
error              {code, message}
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from django.db import connection, transaction
from uuid_utils.compat import uuid7

from agents.models import Event, Run, Step
from agents.services.outcomes import Outcome
from agents.services.threads import follow_up
from agents.services.webhook_outbox import queue_deliveries
from agents.streams.publishing import publish

Happening = tuple[str, dict[str, Any]]
"""An event's type and data."""


_APPEND = """
INSERT INTO agents_event (id, run_id, type, data, created_at, sequence_number)
SELECT given.id, given.run_id, given.type, given.data, now(),
       coalesce(last.number, 0) + row_number() OVER (PARTITION BY given.run_id ORDER BY given.place)
FROM jsonb_to_recordset(%s) AS given(id uuid, run_id uuid, place int, type text, data jsonb)
CROSS JOIN LATERAL (
    SELECT max(sequence_number) AS number FROM agents_event WHERE run_id = given.run_id
) AS last
RETURNING id, sequence_number, created_at
"""


def append_events(run_id: UUID, *happenings: Happening) -> None:
    """Add to the log of a run whose row the caller's transaction has locked."""
    append_to_logs([(run_id, happening) for happening in happenings])


def append_to_logs(news: Sequence[tuple[UUID, Happening]]) -> None:
    """Add to the logs of many runs, whose rows the caller's transaction has locked.

    Webhooks are to tell of it, and threads go on with their next run. Whoever listens is told
    once the transaction is committed.
    """
    if not news:
        return
    rows = [
        {"id": uuid7(), "run_id": run_id, "place": place, "type": kind, "data": data}
        for place, (run_id, (kind, data)) in enumerate(news)
    ]
    with connection.cursor() as cursor:
        cursor.execute(_APPEND, [orjson.dumps(rows).decode()])
        numbers = {event_id: stored for event_id, *stored in cursor.fetchall()}
    events = [_event(row, *numbers[row["id"]]) for row in rows]
    queue_deliveries(events)
    follow_up(events)
    transaction.on_commit(partial(publish, events))


def _event(row: dict[str, Any], number: int, created_at: datetime) -> Event:
    fields = {name: row[name] for name in ("id", "run_id", "type", "data")}
    return Event(**fields, sequence_number=number, created_at=created_at)


def began(step: Step) -> Happening:
    """A step was reserved."""
    return "step.started", {"step": step.number, "kind": step.kind}


def ended(step: Step) -> Happening:
    """A step was recorded."""
    return "step.completed", {"step": step.number, "kind": step.kind}


def replied(
    step: Step, asked: list[Step], usage: dict[str, int | None] | None, *, stands: bool
) -> list[Happening]:
    """A model asked for tools, or gave an answer: the final one, if it ``stands``."""
    news = [ended(step)]
    if usage is not None:
        news.append(("usage.updated", {"usage": usage}))
    if stands:
        news.append(("message.completed", {"step": step.number}))
    elif not asked and (step.message or {}).get("content"):
        news.append(("message.rejected", {"step": step.number}))
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


def asked_for(step: Step) -> Happening:
    """A tool call waits for somebody's word."""
    return "approval.requested", _tool_call(step)


def decided(step: Step) -> Happening:
    """Somebody has decided about a tool call."""
    decision = (step.decision or {}).get("decision")
    return "approval.resolved", {**_tool_call(step), "decision": decision}
