"""A tool whose effect is a row of ours: effect and record are there together, or not at all."""

import pytest

from agents.services.effects import EffectNotWantedError, recorded
from agents.services.worker import advance_run
from llmbroker import ToolContext
from tenants.models import Endpoint
from tests.agents.helpers import a_tool, registry, worker_dies
from tests.support.model_server import ask, by_turn, say

pytestmark = pytest.mark.django_db(transaction=True)

CONVERSATION = by_turn(ask(("add", {"name": "spare"})), say("Added."))


class Killed(BaseException):
    """kill -9: no handler of the worker runs."""


@pytest.fixture
def adding(alice):
    """``adding(crash)``: a tool that adds an endpoint, and calls ``crash`` half-way."""

    def adding(crash=lambda: None):
        def add(name, context: ToolContext):
            with recorded(context) as record:
                Endpoint.objects.create(
                    tenant=alice.tenant,
                    scope=alice.scope,
                    name=name,
                    base_url="https://m.example/v1",
                )
                crash()
                return record(f"added {name}")

        return registry([a_tool("add", add, effect="idempotent")])

    return adding


def dying_worker(ledger):
    """A ledger whose process dies when it is to write a tool's result."""

    class Dying(type(ledger)):
        async def write(self, checkpoint):
            if any(step.result is not None for step in checkpoint.steps):
                raise Killed
            return await super().write(checkpoint)

    return Dying()


@pytest.fixture
def dies(ledger, broker):
    """``dies(run, tools)``: a worker takes the run, and dies before it records the tool's end."""

    def dies(run, tools):
        with dying_worker(ledger) as dying, pytest.raises(Killed):
            advance_run(run_id=run.id, broker=broker, tools=lambda _: tools, ledger=dying)
        worker_dies(run)

    return dies


def test_a_worker_that_dies_after_the_commit_leaves_one_effect_with_its_result(
    model, start, advance, adding, dies
):
    model.answer_with(CONVERSATION)
    tools = adding()
    run = start(tools=["add"], available=tools)
    dies(run, tools)
    assert Endpoint.objects.count() == 1
    run = advance(run, tools=tools)
    assert (run.status, Endpoint.objects.count()) == ("completed", 1)
    assert model.requests[-1].messages[-1]["content"] == "added spare"
    step = run.steps.get(name="add")
    assert (step.status, step.outcome, step.attempts) == ("completed", "success", 1)
    assert run.events.filter(type="tool_call.output").count() == 1


def test_what_fails_before_the_commit_leaves_nothing(model, start, advance, adding):
    def fail():
        raise OSError("half-way")

    model.answer_with(CONVERSATION)
    tools = adding(fail)
    run = advance(start(tools=["add"], available=tools), tools=tools)
    assert (run.status, Endpoint.objects.count()) == ("completed", 0)
    assert run.steps.get(name="add").result == "Tool add failed: half-way"


def test_a_second_worker_that_thinks_the_call_its_own_is_refused(model, start, advance, adding):
    model.answer_with(CONVERSATION)
    tools = adding()
    run = advance(start(tools=["add"], available=tools), tools=tools)
    late = ToolContext(run_id=str(run.id), tool_call_id="call_1")
    with pytest.raises(EffectNotWantedError), recorded(late):
        Endpoint.objects.create(tenant_id=run.tenant_id, name="twice", base_url="https://m.example")
    assert Endpoint.objects.count() == 1
