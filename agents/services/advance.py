"""A run's way from claimed to over: model call, its tool calls, model call, until an answer.

Before each call it is reserved, after each it is recorded; so whoever takes the run over goes
on from the last record. No database connection is held while a model or a tool is at work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from django.db import Error

from agents.models import Run, Step
from agents.services.asking import asked_of_models
from agents.services.connections import release_connection
from agents.services.failures import failure_of
from agents.services.heartbeat import heartbeat
from agents.services.leases import CancelRequestedError, Lease, LeaseLostError, claim
from agents.services.outcomes import CANCELLED, Outcome
from agents.services.recording import leave, record_reply, record_result, reserve
from agents.services.replay import Position, position_of
from agents.services.tool_calls import run_tool
from agents.structured import MISFIT
from agents.tool_registry import ToolRegistry
from llmbroker import Broker, Function, Reply, ToolCall
from llmbroker.attribution import attributed
from llmbroker.errors import LimitExceededError, LLMBrokerError, LLMRequestError

MAX_ATTEMPTS = 3
"""A step that has taken so many workers down with it is not given a further one."""

log = logging.getLogger(__name__)


def advance_run(*, run_id: UUID, broker: Broker, tools: Callable[[Run], ToolRegistry]) -> None:
    """Work on a run until it is over or must wait. Does nothing if that is somebody else's now.

    ``tools`` says what the run may use.
    """
    claimed = claim(run_id)
    if claimed is None:
        return
    run, lease = claimed
    try:
        with heartbeat.keeping(lease):
            _finish(lease, _outcome(run, lease, broker, tools(run).chosen(run.tools)))
    except LeaseLostError:
        log.info("run %s has been taken over by another worker", run_id)
    except Error:
        raise  # nothing can be written: the lease runs out, and the reaper rings for another
    except Exception:
        with suppress(LeaseLostError):
            leave(lease, Outcome.failed("internal_error", "Something went wrong on our side."))
        raise


def _finish(lease: Lease, outcome: Outcome) -> None:
    try:
        leave(lease, outcome)
    except CancelRequestedError:
        leave(lease, CANCELLED)


def _outcome(run: Run, lease: Lease, broker: Broker, tools: ToolRegistry) -> Outcome:
    position = position_of(run, run.steps.order_by("number"), tools)
    try:
        return _work(position, lease, broker, tools)
    except CancelRequestedError:
        return CANCELLED
    except (LLMRequestError, LLMBrokerError) as error:
        if isinstance(error, LimitExceededError) and error.is_money:
            return Outcome(Run.Status.INCOMPLETE, incomplete_reason=Run.IncompleteReason.BUDGET)
        return Outcome(Run.Status.FAILED, last_error=failure_of(error))


def _work(position: Position, lease: Lease, broker: Broker, tools: ToolRegistry) -> Outcome:
    loop = position.loop
    while not loop.done:
        if loop.exhausted and loop.stop is not None:
            return Outcome.stopped(loop.stop)
        step = position.next_step()
        obstacle = _obstacle(step, position, tools)
        if obstacle is not None:
            return obstacle
        reserve(lease, step)
        release_connection()
        if step.kind == Step.Kind.MODEL_CALL:
            with attributed(run=str(position.run.id), step=step.number):
                reply = _ask_model(position, broker)
            record_reply(lease, step, reply, position)
        else:
            result = run_tool(position.run, position.call_of(step), tools)
            record_result(lease, step, result, position)
    return _answer(position)


def _ask_model(position: Position, broker: Broker) -> Reply:
    run, loop = position.run, position.loop
    caller = broker.for_scope(str(run.scope_id))
    release_connection()
    return caller.chat(list(loop.messages), tools=loop.tools, **asked_of_models(run))


def _obstacle(step: Step, position: Position, tools: ToolRegistry) -> Outcome | None:
    """Why a step that was begun before must not simply be begun again, if so."""
    if step.attempts == 0:
        return None
    if step.attempts >= MAX_ATTEMPTS:
        return Outcome.failed(
            "worker_lost", f"The worker was lost {step.attempts} times during step {step.number}."
        )
    if step.kind == Step.Kind.TOOL_CALL and _happens_once(position.call_of(step), tools):
        return Outcome(Run.Status.REQUIRES_ACTION)
    return None


def _happens_once(call: ToolCall, tools: ToolRegistry) -> bool:
    tool = tools.toolbox.find(call.name)
    return isinstance(tool, Function) and tool.effect == "once" and call.arguments is not None


def _answer(position: Position) -> Outcome:
    reply = position.loop.reply
    if reply.finish_reason == "length":
        return Outcome(
            Run.Status.INCOMPLETE, reply.text, incomplete_reason=Run.IncompleteReason.MAX_TOKENS
        )
    if position.loop.fault is not None:
        return replace(Outcome.failed("invalid_output", MISFIT), output_text=reply.text)
    return Outcome(Run.Status.COMPLETED, reply.text)
