"""Runs that wait for somebody hold no worker, and go on when they are given what they wait for."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Run
from agents.services.closing import expire_runs
from tests.agents.helpers import a_tool, registry
from tests.support.model_server import ask, fail, say

pytestmark = pytest.mark.django_db

PAY = ask(("pay", {"amount": 5}))
MAP = {"name": "show_map", "parameters": {"type": "object", "properties": {"city": {}}}}


@pytest.fixture
def paid():
    return []


@pytest.fixture
def bank(paid):
    """A tool that needs approval, and one that does not."""

    def pay(amount):
        paid.append(amount)
        return f"paid {amount}"

    return registry(
        [
            a_tool("pay", pay, effect="once", requires_approval=True),
            a_tool("balance", lambda: "100"),
        ]
    )


@pytest.fixture
def waiting(start, advance, bank):
    """``waiting(**values)``: a run that a worker has left as it waits."""

    def waiting(**values):
        run = start(available=bank, tools=["pay", "balance"], **values)
        return advance(run, tools=bank)

    return waiting


@pytest.fixture
def post(api, alice):
    """``post(run, "approvals", …)``: the run as the answer shows it."""

    def post(run, what, *, status=200, **given):
        answer = api(alice.token).post(f"/api/v1/runs/{run.id}/{what}", given)
        assert answer.status_code == status, answer.content
        return answer.json()

    return post


def told(model):
    return [m["content"] for m in model.requests[-1].messages if m["role"] == "tool"]


def decision(what, call="call_1", **more):
    return {"tool_call_id": call, "decision": what, **more}


def test_a_call_that_needs_approval_waits_while_others_of_its_turn_run(
    model, waiting, api, alice, paid
):
    model.script(ask(("pay", {"amount": 5}), ("balance", {})))
    run = waiting()
    assert (run.status, run.lease_until, paid) == ("requires_action", None, [])
    shown = api(alice.token).get(f"/api/v1/runs/{run.id}").json()
    assert shown["required_action"] == {
        "type": "submit_approvals",
        "tool_calls": [
            {
                "tool_call_id": "call_1",
                "name": "pay",
                "arguments": {"amount": 5},
                "number": 2,
                "needs": "approval",
            }
        ],
    }
    assert run.steps.get(name="balance").result == "100"
    assert run.events.filter(type="approval.requested").count() == 1


@pytest.mark.parametrize(
    ("given", "ran", "result"),
    [
        (decision("approve"), [5], "paid 5"),
        (decision("edit", arguments={"amount": 3}), [3], "paid 3"),
        (decision("reject", message="Too much."), [], "Tool pay failed: denied: Too much."),
        (decision("reject"), [], "Tool pay failed: denied"),
    ],
)
def test_the_run_goes_on_as_was_decided(
    *, model, waiting, post, advance, bank, paid, given, ran, result
):
    model.script(PAY, say("So be it."))
    run = waiting()
    assert post(run, "approvals", approvals=[given])["status"] == "queued"
    run = advance(run, tools=bank)
    assert (run.status, run.output_text) == ("completed", "So be it.")
    assert (paid, told(model)) == (ran, [result])
    asked = model.requests[-1].messages[-2]["tool_calls"][0]
    assert asked["function"]["arguments"] == '{"amount": 5}', "history shows what the model asked"


def test_a_call_that_cannot_be_run_asks_nobody(model, start, advance):
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    bank = registry([a_tool("pay", dict, requires_approval=True, parameters=schema)])
    model.script(ask(("pay", {"amount": "much"})), say("I see."))
    run = advance(start(available=bank, tools=["pay"]), tools=bank)
    assert run.status == "completed"
    assert run.steps.get(kind="tool_call").outcome == "invalid_arguments"


def test_the_clients_own_tools_are_offered_and_their_outputs_awaited_in_parts(
    model, start, advance, post
):
    model.script(
        ask(("show_map", {"city": "Xiva"}), ("show_map", {"city": "Buxoro"})), say("There.")
    )
    run = advance(start(client_tools=[MAP]))
    assert [tool["function"]["name"] for tool in model.requests[0].body["tools"]] == ["show_map"]
    assert run.status == "requires_action"

    def output(call, text, **more):
        return {"tool_call_id": call, "output": text, **more}

    first = post(run, "submit_tool_outputs", tool_outputs=[output("call_2", "Buxoro: shown")])
    assert first["status"] == "requires_action"
    assert [call["tool_call_id"] for call in first["required_action"]["tool_calls"]] == ["call_1"]
    failed = output("call_1", "no such map", failed=True)
    assert post(run, "submit_tool_outputs", tool_outputs=[failed])["status"] == "queued"
    assert advance(run).output_text == "There."
    assert told(model) == ["Tool show_map failed: no such map", "Buxoro: shown"]


def test_what_nobody_waits_for_is_refused_and_changes_nothing(model, waiting, post, advance, paid):
    model.script(PAY)
    run = waiting()
    post(run, "approvals", status=400, approvals=[decision("approve", call="call_9")])
    outputs = [{"tool_call_id": "call_1", "output": "paid"}]
    post(run, "submit_tool_outputs", status=400, tool_outputs=outputs)
    assert post(run, "approvals", approvals=[decision("approve")])["status"] == "queued"
    post(run, "approvals", status=409, approvals=[decision("reject")])
    assert paid == []


def test_cancelling_a_waiting_run_ends_it_at_once_with_a_whole_history(model, waiting, post, paid):
    model.script(PAY)
    run = waiting()
    ended = post(run, "cancel")
    assert (ended["status"], ended["effects"], paid) == ("cancelled", [], [])
    step = run.steps.get(name="pay")
    assert (step.status, step.needs, step.outcome) == ("cancelled", None, "interrupted")
    assert step.result == "Tool pay failed: not run, because the run was cancelled"


def test_a_run_that_waits_for_too_long_expires(model, waiting, start):
    model.script(PAY)
    runs = [waiting(expires_after=60.0), start(expires_after=60.0), start()]
    assert expire_runs() == 0
    Run.objects.filter(expires_at__isnull=False).update(expires_at=timezone.now())
    assert expire_runs() == 2
    ended = [Run.objects.get(id=run.id) for run in runs]
    assert [run.status for run in ended] == ["expired", "expired", "queued"]
    assert ended[0].events.last().type == "run.expired"


def test_a_run_of_later_is_nobodys_yet(model, start, advance):
    run = start(after_seconds=60.0)
    assert advance(run).status == "queued"
    assert model.requests == []
    Run.objects.filter(id=run.id).update(due_at=timezone.now())
    model.script(say("Now."))
    assert advance(run).output_text == "Now."


def test_a_pool_that_cools_down_is_waited_for_without_a_worker(model, start, advance):
    model.script(fail(429, "slow down", Retry_After="600"))
    run = advance(start())
    assert (run.status, run.lease_until) == ("queued", None)
    assert 590 < (run.due_at - timezone.now()).total_seconds() <= 760  # a quarter of jitter
    assert [(step.status, step.attempts) for step in run.steps.all()] == [("queued", 0)]


def test_models_that_stay_away_for_a_day_are_waited_for_no_longer(model, start, advance):
    model.script(fail(429, "slow down", Retry_After="600"))
    run = start()
    Run.objects.filter(id=run.id).update(started_at=timezone.now() - timedelta(hours=24))
    run = advance(run)
    assert (run.status, run.last_error["code"]) == ("failed", "no_llm_available")


def test_a_run_that_goes_on_waits_for_models_however_long_it_has_taken(model, start, advance):
    model.script(
        ask(("calculate", {"expression": "6 * 7"})), fail(429, "slow down", Retry_After="600")
    )
    run = start(tools=["calculate"])
    Run.objects.filter(id=run.id).update(started_at=timezone.now() - timedelta(days=9))
    assert advance(run).status == "queued"
