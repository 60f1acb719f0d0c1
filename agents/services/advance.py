"""A run's way from claimed to over: model call, its tool calls, model call, until an answer.

Before each call it is reserved, after each it is recorded; so whoever takes the run over goes
on from the last record. No database connection is held while a model or a tool is at work.
"""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import DatabaseError, connection

from agents.models import Run, Step
from agents.services.failures import failure, failure_of
from agents.services.heartbeat import heartbeat
from agents.services.leases import CancelRequestedError, Lease, LeaseLostError, claim
from agents.services.outcomes import CANCELLED, Outcome
from agents.services.recording import leave, record_reply, record_result, reserve
from agents.services.replay import Position, call_of, position_of
from agents.services.tool_calls import run_tool
from agents.tool_registry import Effect, Tool, ToolRegistry
from llmbroker import Broker
from llmbroker.errors import LLMBrokerError, LLMRequestError
from llmbroker.tools.execution import find

MAX_ATTEMPTS = 3
"""A step that has taken so many workers down with it is not given a further one."""

log = logging.getLogger(__name__)


def advance_run(*, run_id: UUID, broker: Broker, tools: ToolRegistry) -> None:
    """Work on a run until it is over or must wait. Does nothing if that is somebody else's now."""
    claimed = claim(run_id)
    if claimed is None:
        return
    run, lease = claimed
    try:
        with heartbeat.keeping(lease):
            _finish(lease, _outcome(run, lease, broker, tools.chosen(run.tools)))
    except LeaseLostError:
        log.info("run %s has been taken over by another worker", run_id)
    except DatabaseError:
        raise  # nothing can be written: the lease runs out, and the reaper rings for another
    except Exception:
        leave(lease, _failed("internal_error", "Something went wrong on our side."))
        raise


def _finish(lease: Lease, outcome: Outcome) -> None:
    try:
        leave(lease, outcome)
    except CancelRequestedError:
        leave(lease, CANCELLED)


def _outcome(run: Run, lease: Lease, broker: Broker, tools: ToolRegistry) -> Outcome:
    try:
        return _work(run, lease, broker, tools)
    except CancelRequestedError:
        return CANCELLED
    except (LLMRequestError, LLMBrokerError) as error:
        return Outcome(Run.Status.FAILED, last_error=failure_of(error))


def _work(run: Run, lease: Lease, broker: Broker, tools: ToolRegistry) -> Outcome:
    position = position_of(run, run.steps.order_by("number"), tools)
    while not position.loop.done:
        if position.loop.exhausted:
            return Outcome(Run.Status.INCOMPLETE, incomplete_reason=Run.IncompleteReason.MAX_STEPS)
        step = position.next_step(run.id)
        obstacle = _obstacle(step, tools)
        if obstacle is not None:
            return obstacle
        reserve(lease, step)
        _release_connection()
        if step.kind == Step.Kind.MODEL_CALL:
            _call_model(run, lease, step, position, broker)
        else:
            _call_tool(lease, step, position, tools)
    return _answer(position)


def _call_model(run: Run, lease: Lease, step: Step, position: Position, broker: Broker) -> None:
    caller = broker.for_scope(str(run.scope_id))
    _release_connection()
    reply = caller.chat(
        list(position.loop.messages),
        tools=position.loop.tools,
        operation=run.operation,
        trace_id=run.trace_id,
    )
    record_reply(lease, step, reply, position)


def _call_tool(lease: Lease, step: Step, position: Position, tools: ToolRegistry) -> None:
    call = call_of(step)
    outcome = run_tool(call, tools)
    record_result(lease, step, outcome)
    position.loop.record(call, outcome.text)


def _release_connection() -> None:
    """Back to the pool, while a call takes its time; a caller's own transaction keeps it."""
    if not connection.in_atomic_block:
        connection.close()


def _obstacle(step: Step, tools: ToolRegistry) -> Outcome | None:
    """Why a step that was begun before must not simply be begun again, if so."""
    if step.attempts == 0:
        return None
    if step.attempts >= MAX_ATTEMPTS:
        return _failed(
            "worker_lost", f"The worker was lost {step.attempts} times during step {step.number}."
        )
    tool = find(step.name or "", tools)
    if isinstance(tool, Tool) and tool.effect == Effect.ONCE and step.arguments is not None:
        return Outcome(Run.Status.REQUIRES_ACTION)
    return None


def _answer(position: Position) -> Outcome:
    reply = position.loop.reply
    if reply.finish_reason == "length":
        return Outcome(
            Run.Status.INCOMPLETE, reply.text, incomplete_reason=Run.IncompleteReason.MAX_TOKENS
        )
    return Outcome(Run.Status.COMPLETED, reply.text)


def _failed(code: str, message: str) -> Outcome:
    return Outcome(Run.Status.FAILED, last_error=failure(code, message))
