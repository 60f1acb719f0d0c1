"""Creating a run, once per idempotency key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import transaction
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from agents.models import Agent, Run
from agents.selectors import active_runs, agent_by_slug, run_by_idempotency_key
from agents.services.agent_versions import newest_version
from agents.services.cancelling import cancel_run
from agents.services.doorbell import ring
from agents.services.events import append_events, entered
from agents.services.instructions import instructions_for
from agents.services.threads import Strategy, join, locked_unfinished
from agents.tool_registry import ToolRegistry
from llmbroker.models import Message
from llmbroker.text import storable_json
from tenants.caller import Caller
from tenants.errors import Conflict, InvalidInput
from tenants.idempotency import hold_key
from tenants.services.limits import locked_run_limits, refuse_one_too_many


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a run is to do. What is None is the agent's, else a default.

    It begins ``after_seconds`` or at ``start_at``; if it still waits ``expires_after`` seconds
    from now, for a worker or for somebody's word, it expires.
    """

    messages: Sequence[Message]
    agent: str | None = None
    tools: Sequence[str] | None = None
    client_tools: Sequence[Mapping[str, Any]] = ()
    max_steps: int | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    max_cost: Decimal | None = None
    max_seconds: int | None = None
    final_answer: bool = False
    after_seconds: float | None = None
    start_at: datetime | None = None
    expires_after: float | None = None
    operation: str | None = None
    trace_id: str | None = None
    variables: Mapping[str, Any] | None = None
    metadata: Mapping[str, str] | None = None
    prefer: str | None = None
    output_schema: Mapping[str, Any] | None = None
    deltas: bool = False
    schedule: UUID | None = None
    scheduled_for: datetime | None = None
    thread: UUID | None = None
    multitask_strategy: Strategy = "reject"

    @property
    def fingerprint(self) -> str:
        """The same for requests that ask for the same."""
        asked = storable_json([getattr(self, field.name) for field in fields(self)])
        return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()


class CreatedRun(NamedTuple):
    """A run, and whether an earlier request with the same key had made it."""

    run: Run
    replayed: bool


def create_run(
    *,
    caller: Caller,
    request: RunRequest,
    available: ToolRegistry,
    idempotency_key: str | None = None,
) -> CreatedRun:
    """Store a run of ``caller``'s scope, and ring for a worker once it is committed.

    Raises NotFound (agent, thread), InvalidInput (tools, variables) and Conflict (the key
    was used for another request, a run of the thread is not over).
    """
    earlier = run_by_idempotency_key(caller.scope, idempotency_key)
    if earlier is not None:
        return _replayed(earlier, request)
    run = _new_run(caller, request, available)
    available.require(run.tools)
    _check_client_tools(run)
    if idempotency_key is not None:
        run.idempotency_key, run.request_fingerprint = idempotency_key, request.fingerprint
    return _stored(run, caller, request)


def _new_run(caller: Caller, request: RunRequest, available: ToolRegistry) -> Run:
    agent = None if request.agent is None else agent_by_slug(caller.tenant, request.agent)
    template = agent or Agent()
    before = instructions_for(template, request.variables, available)
    run_id = uuid7()
    return Run(
        id=run_id,
        tenant=caller.tenant,
        scope=caller.scope,
        agent=agent,
        agent_version=None if agent is None else newest_version(agent),
        schedule_id=request.schedule,
        scheduled_for=request.scheduled_for,
        thread_id=request.thread,
        messages=storable_json([*before, *request.messages]),
        tools=list(template.tools if request.tools is None else request.tools),
        client_tools=storable_json([dict(each) for each in request.client_tools]),
        max_steps=request.max_steps or template.max_steps,
        max_tool_calls=request.max_tool_calls,
        max_tokens=request.max_tokens,
        max_cost=request.max_cost,
        max_seconds=request.max_seconds,
        final_answer=request.final_answer,
        operation=request.operation or template.operation or template.slug or None,
        trace_id=request.trace_id or str(run_id),
        prefer=request.prefer or template.prefer,
        output_schema=request.output_schema or template.output_schema,
        deltas=request.deltas,
        metadata=request.metadata or {},
        created_by=caller.user,
        **_times(request),
    )


def _times(request: RunRequest) -> dict[str, Any]:
    """When the run is due and when it expires, by the database's clock where it is told in
    seconds from now."""
    times: dict[str, Any] = {}
    if request.start_at is not None:
        times["due_at"] = request.start_at
    elif request.after_seconds is not None:
        times["due_at"] = Now() + timedelta(seconds=request.after_seconds)
    if request.expires_after is not None:
        times["expires_at"] = Now() + timedelta(seconds=request.expires_after)
    return times


def _check_client_tools(run: Run) -> None:
    names = [tool["name"] for tool in run.client_tools]
    taken = next((name for name in names if name in run.tools or names.count(name) > 1), None)
    if taken is not None:
        raise InvalidInput(f"Two tools are called {taken}.", param="client_tools")


@transaction.atomic
def _stored(run: Run, caller: Caller, request: RunRequest) -> CreatedRun:
    """The run is written; or there is one of its key by now, for which nothing else is done."""
    if run.idempotency_key is not None:
        hold_key(caller.scope, run.idempotency_key)
        earlier = run_by_idempotency_key(caller.scope, run.idempotency_key)
        if earlier is not None:
            return _replayed(earlier, request)
    limits = locked_run_limits(caller=caller)
    if request.thread is not None and request.multitask_strategy == "interrupt":
        for run_id in locked_unfinished(request.thread):
            cancel_run(run_id=run_id)
    refuse_one_too_many(limits, caller=caller, active=partial(active_runs, caller.tenant))
    join(run, len(request.messages), request.multitask_strategy)
    run.save(force_insert=True)
    run.refresh_from_db(fields=["due_at", "expires_at"])
    append_events(run.id, entered(Run.Status.QUEUED))
    if run.history_index is None:
        transaction.on_commit(ring)
    return CreatedRun(run, replayed=False)


def _replayed(earlier: Run, request: RunRequest) -> CreatedRun:
    if earlier.request_fingerprint != request.fingerprint:
        raise Conflict(
            "This Idempotency-Key was used for another request.", code="idempotency_conflict"
        )
    return CreatedRun(earlier, replayed=True)
