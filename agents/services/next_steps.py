"""What comes next of a run: the steps that can be made now, or how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.models import Run, Step
from agents.services.needs import effect_of, needs_of
from agents.services.outcomes import Outcome
from agents.services.replay import Position
from agents.structured import MISFIT
from agents.tool_registry import ToolRegistry
from llmbroker.tools.limits import Stop

MAX_ATTEMPTS = 3
"""A step that has taken so many workers down with it is not given a further one."""


def unreserve(steps: Sequence[Step]) -> None:
    """Take back reservations, on purpose: no worker was lost over these steps."""
    for step in steps:
        if step.status == Step.Status.IN_PROGRESS:
            step.status, step.attempts = Step.Status.QUEUED, step.attempts - 1


def ready_steps(position: Position, tools: ToolRegistry) -> tuple[list[Step], Outcome | None]:
    """The steps that can be made now; or the outcome, where none can."""
    steps = position.due()
    for step in steps:
        if step.attempts >= MAX_ATTEMPTS:
            return [], Outcome.failed(
                "worker_lost",
                f"The worker was lost {step.attempts} times during step {step.number}.",
            )
        if step.kind == Step.Kind.TOOL_CALL:
            step.needs = needs_of(step, position, tools)
            step.effect = effect_of(step, tools)
    ready = [step for step in steps if step.needs is None]
    if not ready:
        return [], Outcome(Run.Status.REQUIRES_ACTION)
    most = position.run.max_tool_calls
    asked = sum(step.kind == Step.Kind.TOOL_CALL for step in ready)
    if most is not None and asked and position.tool_calls + asked > most:
        return [], Outcome(Run.Status.INCOMPLETE, incomplete_reason=Run.IncompleteReason.BUDGET)
    return ready, None


def answered(position: Position, stopped: Stop | None) -> Outcome:
    """How a run ends whose model has answered.

    ``stopped`` is the limit beyond which the model was asked for one last answer.
    """
    reply = position.loop.reply
    if stopped is not None:
        return replace(Outcome.stopped(stopped), output_text=reply.text)
    if reply.finish_reason == "length":
        return Outcome(
            Run.Status.INCOMPLETE, reply.text, incomplete_reason=Run.IncompleteReason.MAX_TOKENS
        )
    if position.loop.fault is not None:
        return replace(Outcome.failed("invalid_output", MISFIT), output_text=reply.text)
    return Outcome(Run.Status.COMPLETED, reply.text)
