"""The checkpoints of a run: what is reserved before it is done, and recorded after.

Each is one transaction under the worker's fencing token, together with its events.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models.functions import Now
from django.utils import timezone

from agents.models import Run, Step
from agents.services.events import answered, append_events, began, left, replied
from agents.services.leases import Lease, checkpoint
from agents.services.outcomes import Outcome
from agents.services.replay import Position, RecordedReply
from llmbroker import Reply, ToolCall, ToolResult, ToolStatus, Usage
from llmbroker.text import clip, storable_json

# A failure is reported as one even to whoever was just cancelling; success is not.
_WINS_OVER_CANCEL = (Run.Status.CANCELLED, Run.Status.FAILED)


def reserve(lease: Lease, step: Step) -> None:
    """Say that ``step`` begins now. Raises CancelRequestedError where nothing may begin."""
    step.status = Step.Status.IN_PROGRESS
    step.attempts += 1
    step.started_at = timezone.now()
    with checkpoint(lease, during=(Run.Status.IN_PROGRESS,)):
        step.save()
        append_events(lease.run_id, began(step))


def record_reply(lease: Lease, step: Step, reply: Reply, position: Position) -> None:
    """Store the model's reply, and the tool calls that it asks for as steps that wait."""
    recorded = RecordedReply.of_reply(reply)
    calls = position.loop.receive(recorded)
    step.message = recorded.with_ids_of(calls).message
    step.llm_name = clip(reply.llm_name, 200)
    step.call_id = UUID(reply.call_id)
    step.finish_reason = recorded.finish_reason
    step.usage = _figures(recorded.usage)
    _close(step, Step.Status.COMPLETED)
    asked = [
        _tool_step(lease.run_id, number, call)
        for number, call in enumerate(calls, start=position.next_number)
    ]
    usage = _figures(position.loop.run_usage)
    with checkpoint(lease, usage=usage):
        step.save()
        Step.objects.bulk_create(asked)
        append_events(lease.run_id, *replied(step, asked, usage))
    position.next_number += len(asked)
    position.open.extend(asked)


def record_result(lease: Lease, step: Step, result: ToolResult, position: Position) -> None:
    """Store what the model is told of its tool call, and how that ended."""
    step.result = result.text
    step.outcome = result.status
    worked = result.status is ToolStatus.SUCCESS
    _close(step, Step.Status.COMPLETED if worked else Step.Status.FAILED)
    with checkpoint(lease):
        step.save()
        append_events(lease.run_id, *answered(step))
    position.loop.record(result.call, result.text, result.status)


def leave(lease: Lease, outcome: Outcome) -> None:
    """Put the run into the state in which its worker leaves it.

    Raises CancelRequestedError if it was to end well and is being cancelled.
    """
    stands = outcome.status in _WINS_OVER_CANCEL
    with checkpoint(
        lease,
        during=Run.WORKING if stands else (Run.Status.IN_PROGRESS,),
        status=outcome.status,
        output_text=outcome.output_text,
        incomplete_reason=outcome.incomplete_reason,
        last_error=outcome.last_error,
        ended_at=Now() if outcome.is_final else None,
        lease_until=None,
    ):
        close_open_steps(lease.run_id, outcome)
        append_events(lease.run_id, *left(outcome))


def close_open_steps(run_id: UUID, outcome: Outcome) -> None:
    """End the steps that a run which is over leaves behind."""
    if outcome.is_final:
        failed = outcome.status == Run.Status.FAILED
        Step.objects.filter(run_id=run_id, status__in=Step.OPEN).update(
            status=Step.Status.FAILED if failed else Step.Status.CANCELLED,
            error=outcome.last_error,
            ended_at=Now(),
        )


def _close(step: Step, status: Step.Status) -> None:
    step.status = status
    step.ended_at = timezone.now()


def _figures(usage: Usage | None) -> dict[str, int | None] | None:
    return usage.as_dict() if usage is not None else None


def _tool_step(run_id: UUID, number: int, call: ToolCall) -> Step:
    return Step(
        run_id=run_id,
        number=number,
        kind=Step.Kind.TOOL_CALL,
        status=Step.Status.QUEUED,
        tool_call_id=call.id,
        name=call.name,
        arguments=storable_json(call.arguments),
    )
