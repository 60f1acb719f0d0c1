"""Cancelling is a row that the worker reads: at once where a run waits, else at its next step."""

import pytest

from agents.models import Run
from agents.services.cancelling import cancel_run
from agents.services.dispatch import claim
from tests.agents.helpers import Models, a_tool, registry, worker_dies
from tests.support.model_server import ask, say

pytestmark = pytest.mark.django_db


def types(run):
    return list(run.events.values_list("type", flat=True))


def test_a_queued_run_is_cancelled_at_once_and_never_calls_a_model(model, start, advance):
    run = start()
    assert cancel_run(run_id=run.id).status == "cancelled"
    run = advance(run)
    assert run.status == "cancelled"
    assert run.cancel_requested_at is not None
    assert run.ended_at is not None
    assert model.requests == []
    assert types(run) == ["run.queued", "run.cancelled"]


@pytest.mark.django_db(transaction=True)
def test_a_run_at_work_stops_before_its_next_model_call(model, start, advance):
    def stop():
        seen.append(cancel_run(run_id=run.id).status)
        return "stopping"

    seen = []
    tools = registry([a_tool("stop", stop)])
    model.script(ask(("stop", {})))
    run = start(tools=["stop"], available=tools)
    run = advance(run, tools=tools)
    assert seen == ["cancelling"]
    assert run.status == "cancelled"
    assert len(model.requests) == 1
    assert types(run)[-4:] == [
        "run.cancelling",
        "tool_call.output",
        "step.completed",
        "run.cancelled",
    ]


@pytest.mark.django_db(transaction=True)
def test_tools_that_have_not_begun_are_not_run(model, start, advance):
    ran = []

    def stop():
        cancel_run(run_id=run.id)
        return "stopping"

    tools = registry(
        [
            a_tool("stop", stop, sequential=True),
            a_tool("effect", lambda: ran.append(1), sequential=True),
        ]
    )
    model.script(ask(("stop", {}), ("effect", {}), ("effect", {})))
    run = start(tools=["stop", "effect"], available=tools)
    run = advance(run, tools=tools)
    assert ran == []
    assert [step.status for step in run.steps.all()] == [
        "completed",
        "completed",
        "cancelled",
        "cancelled",
    ]
    assert run.steps.get(number=2).result == "stopping"


def test_an_answer_that_arrives_while_cancelling_is_kept_as_a_step_and_not_as_success(
    model, start, advance, broker, ledger
):
    async def cancelled_meanwhile(*args, **kwargs):
        """The answer is on its way when the cancel comes."""
        reply = await broker.asynchronous.chat(*args, **kwargs)
        await ledger.ask(lambda: cancel_run(run_id=run.id))
        return reply

    model.script(say("Too late."))
    run = start()
    run = advance(run, broker=Models(broker, cancelled_meanwhile))
    assert (run.status, run.output_text) == ("cancelled", None)
    assert run.steps.get().message["content"] == "Too late."
    assert run.usage["total_tokens"] == 15


def test_a_run_whose_worker_died_while_cancelling_is_cancelled_by_the_next(model, start, advance):
    run = start()
    claim(run.id)
    assert cancel_run(run_id=run.id).status == "cancelling"
    worker_dies(run)
    run = advance(run)
    assert run.status == "cancelled"
    assert model.requests == []


def test_cancelling_again_changes_nothing(start, advance):
    run = start()
    claim(run.id)
    cancel_run(run_id=run.id)
    before = Run.objects.filter(id=run.id).values().get()
    assert cancel_run(run_id=run.id).status == "cancelling"
    assert Run.objects.filter(id=run.id).values().get() == before
    assert types(run).count("run.cancelling") == 1


def test_a_run_that_is_over_stays_as_it_ended(model, start, advance):
    model.script(say("Done."))
    run = advance(start())
    assert cancel_run(run_id=run.id).status == "completed"
    assert Run.objects.get(id=run.id).cancel_requested_at is None
