"""Creating a run, once per idempotency key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson
from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from agents.models import Agent, Run
from agents.models.agents import DEFAULT_STEPS
from agents.selectors import agent_by_slug, run_by_idempotency_key
from agents.services.doorbell import ring
from agents.services.events import append_events
from agents.tool_registry import ToolRegistry
from llmbroker.models import Message
from llmbroker.text import storable_json
from tenants.caller import Caller
from tenants.errors import Conflict, InvalidInput


class CreatedRun(NamedTuple):
    """A run, and whether an earlier request with the same key had made it."""

    run: Run
    replayed: bool


def create_run(
    *,
    caller: Caller,
    available: ToolRegistry,
    messages: Sequence[Message],
    agent_slug: str | None = None,
    tools: Sequence[str] | None = None,
    max_steps: int | None = None,
    operation: str | None = None,
    trace_id: str | None = None,
    metadata: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
) -> CreatedRun:
    """Store a run of ``caller``'s scope, and ring for a worker once it is committed.

    What is None is the agent's, else a default. Raises NotFound (agent), InvalidInput (tools)
    and Conflict (the key was used for another request).
    """
    asked = [messages, agent_slug, tools, max_steps, operation, trace_id, metadata]
    agent = agent_by_slug(caller.tenant, agent_slug) if agent_slug is not None else None
    run_id = uuid7()
    run = Run(
        id=run_id,
        tenant=caller.tenant,
        scope=caller.scope,
        agent=agent,
        messages=storable_json([*_instructions(agent), *messages]),
        tools=list(_or_agents(tools, agent and agent.tools) or ()),
        max_steps=_or_agents(max_steps, agent and agent.max_steps) or DEFAULT_STEPS,
        operation=_or_agents(operation, agent and (agent.operation or agent.slug)),
        trace_id=trace_id or str(run_id),
        metadata=metadata or {},
        created_by=caller.user,
        idempotency_key=idempotency_key,
        request_fingerprint=_fingerprint(asked) if idempotency_key else "",
    )
    check_tools(run.tools, available)
    return _stored(run)


def _or_agents(given: Any, agents: Any) -> Any:
    return agents if given is None else given


def _instructions(agent: Agent | None) -> list[Message]:
    if agent is None or not agent.instructions:
        return []
    return [{"role": "system", "content": agent.instructions}]


def check_tools(names: Sequence[str], available: ToolRegistry) -> None:
    unknown = available.unknown(names)
    if unknown:
        raise InvalidInput(
            f"Unknown tool {unknown[0]}. Available tools: {', '.join(sorted(available))}.",
            code="unknown_tool",
            param="tools",
        )


def _fingerprint(asked: Sequence[object]) -> str:
    canonical = orjson.dumps(storable_json(asked), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def _stored(run: Run) -> CreatedRun:
    try:
        with transaction.atomic():
            run.save(force_insert=True)
            append_events(run.id, ("run.queued", {}))
            transaction.on_commit(partial(ring, run.id))
    except IntegrityError:
        # Insert first, look after: of two requests at once the database lets one through.
        earlier = run_by_idempotency_key(run.scope, run.idempotency_key)
        if earlier is None:
            raise
    else:
        return CreatedRun(run, replayed=False)
    if earlier.request_fingerprint != run.request_fingerprint:
        raise Conflict(
            "This Idempotency-Key was used for another request.", code="idempotency_conflict"
        )
    return CreatedRun(earlier, replayed=True)
