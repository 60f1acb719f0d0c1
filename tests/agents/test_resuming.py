"""A worker may die at any moment: the next one goes on from what is recorded."""

import json
from contextlib import contextmanager, suppress

import pytest
from django.db import connection

from agents.models import Run
from tests.agents.helpers import Models, a_tool, registry, summary, worker_dies
from tests.support.model_server import Reply, ask, by_turn, say

pytestmark = pytest.mark.django_db

CONVERSATION = by_turn(
    ask(("count", {"by": 1}), ("count", "[not an object]")),
    ask(("count", {"by": 2}), ids=("call_1",)),  # as some servers do: the same id again
    say("Counted."),
)


class Killed(BaseException):
    """kill -9: no handler of the worker runs."""


@contextmanager
def killed_before_statement(number):
    """The worker dies just before its ``number``-th statement reaches the database."""
    seen = 0

    def execute(execute, sql, params, many, context):
        nonlocal seen
        seen += 1
        if seen == number:
            raise Killed
        return execute(sql, params, many, context)

    with connection.execute_wrapper(execute), suppress(Killed):
        yield


@pytest.fixture
def counted():
    return []


@pytest.fixture
def counter(counted):
    def count(by):
        counted.append(by)
        return f"counted {by}"

    return registry([a_tool("count", count)])


@pytest.fixture
def interrupted(start, advance, counter):
    """``interrupted(number)``: a run whose worker died before that statement."""

    def interrupted(number):
        run = start(tools=["count"], available=counter)
        with killed_before_statement(number):
            advance(run, tools=counter)
        worker_dies(run)
        return run

    return interrupted


def the_whole_story(run):
    assert run.status == "completed"
    assert run.output_text == "Counted."
    assert summary(run) == [
        ("model_call", "tested", "completed"),
        ("tool_call", "count", "completed"),
        ("tool_call", "count", "failed"),
        ("model_call", "tested", "completed"),
        ("tool_call", "count", "completed"),
        ("model_call", "tested", "completed"),
    ]
    assert [step.number for step in run.steps.all()] == list(range(1, 7))
    first, refused, second = run.steps.filter(kind="tool_call")
    assert (first.result, second.result) == ("counted 1", "counted 2")
    assert "not valid JSON" in refused.result
    assert run.usage["total_tokens"] == 45
    kinds = list(run.events.values_list("type", flat=True))
    assert kinds.count("run.completed") == 1
    assert kinds.count("tool_call.output") == 3
    return True


def test_a_worker_killed_before_any_statement_leaves_a_run_that_ends_all_the_same(
    model, advance, counter, counted, interrupted
):
    """Every statement of the whole run is a place to die at; at most one call is repeated."""
    model.answer_with(CONVERSATION)
    number, died = 0, True
    while died:
        number += 1
        model.requests.clear()
        counted.clear()
        run = interrupted(number)
        died = Run.objects.get(id=run.id).status != "completed"
        run = advance(run, tools=counter)
        assert the_whole_story(run), number
        assert len(model.requests) <= 3 + died, number
        assert len(counted) <= 2 + died, number
        assert sorted(set(counted)) == [1, 2], number
    assert number > 25


def test_recorded_steps_are_reused_word_for_word(model, advance, counter, interrupted, counted):
    model.answer_with(CONVERSATION)
    run = interrupted(24)
    recorded = list(run.steps.filter(status="completed").values())
    assert recorded
    counted.clear()
    run = advance(run, tools=counter)
    assert list(run.steps.values())[: len(recorded)] == recorded


def test_the_model_sees_the_same_conversation_as_without_the_interruption(
    model, start, advance, counter, interrupted
):
    model.answer_with(CONVERSATION)
    advance(start(tools=["count"], available=counter), tools=counter)
    undisturbed = model.requests[-1].messages
    run = interrupted(24)
    advance(run, tools=counter)
    resumed = model.requests[-1].messages

    def without_made_up_ids(messages):
        return [
            {
                **message,
                "tool_call_id": None,
                "tool_calls": [{**call, "id": None} for call in message.get("tool_calls", ())],
            }
            for message in messages
        ]

    assert without_made_up_ids(resumed) == without_made_up_ids(undisturbed)


@pytest.fixture
def die_at(start, advance):
    """``die_at("tool", function)``: a run whose worker died just after the tool had run."""

    def die_at(name, function, **options):
        ran = []

        def deadly(**arguments):
            function(**arguments)
            ran.append(arguments)

        def die(execute, sql, params, many, context):
            if len(ran) > deaths:
                raise Killed
            return execute(sql, params, many, context)

        def once_more():
            nonlocal deaths
            with connection.execute_wrapper(die), pytest.raises(Killed):
                advance(run, tools=killing)
            deaths = len(ran)
            worker_dies(run)

        deaths = 0
        sound = registry([a_tool(name, function, **options)])
        killing = registry([a_tool(name, deadly, **options)])
        run = start(tools=[name], available=sound)
        once_more()
        return run, sound, once_more

    return die_at


@pytest.mark.parametrize(
    ("effect", "status", "times"),
    [("pure", "completed", 2), ("idempotent", "completed", 2), ("once", "requires_action", 1)],
)
def test_a_tool_of_unknown_outcome_runs_again_only_if_that_is_harmless(
    *, model, die_at, advance, effect, status, times
):
    paid = []

    def pay(amount):
        paid.append(amount)

    model.answer_with(by_turn(ask(("pay", {"amount": 5})), say("Paid.")))
    run, tools, _ = die_at("pay", pay, effect=effect)
    run = advance(run, tools=tools)
    assert (run.status, len(paid)) == (status, times)


def test_a_once_tool_of_unknown_outcome_is_named_as_what_is_to_be_settled(
    model, die_at, advance, api, alice
):
    model.answer_with(by_turn(ask(("pay", {"amount": 5})), say("Paid.")))
    run, tools, _ = die_at("pay", lambda amount: "paid", effect="once")
    run = advance(run, tools=tools)
    assert run.status == "requires_action"
    assert run.lease_until is None
    assert run.events.last().type == "run.requires_action"
    shown = api(alice.token).get(f"/api/v1/runs/{run.id}").json()
    assert shown["required_action"] == {
        "type": "submit_tool_outputs",
        "tool_calls": [
            {
                "tool_call_id": "call_1",
                "name": "pay",
                "arguments": {"amount": 5},
                "number": 2,
                "needs": "outcome",
            }
        ],
    }


@pytest.mark.parametrize(
    ("path", "given", "times"),
    [
        ("submit_tool_outputs", {"tool_outputs": [{"tool_call_id": "call_1", "output": "yes"}]}, 1),
        ("approvals", {"approvals": [{"tool_call_id": "call_1", "decision": "approve"}]}, 2),
        ("approvals", {"approvals": [{"tool_call_id": "call_1", "decision": "reject"}]}, 1),
    ],
    ids=["it happened", "do it again", "leave it"],
)
def test_an_unknown_outcome_is_settled_by_whoever_knows(
    *, model, die_at, advance, api, alice, path, given, times
):
    paid = []

    def pay(amount):
        paid.append(amount)
        return "paid"

    model.answer_with(by_turn(ask(("pay", {"amount": 5})), say("Paid.")))
    run, tools, _ = die_at("pay", pay, effect="once")
    advance(run, tools=tools)
    answer = api(alice.token).post(f"/api/v1/runs/{run.id}/{path}", given)
    assert answer.json()["status"] == "queued"
    run = advance(run, tools=tools)
    assert (run.status, len(paid)) == ("completed", times)


def test_a_worker_that_takes_over_a_run_that_repeats_itself_counts_on(
    model, start, advance, broker
):
    async def killed_at_the_third(*args, **kwargs):
        if len(model.requests) == 2:
            raise Killed
        return await broker.asynchronous.chat(*args, **kwargs)

    model.answer_with(lambda request: ask(("look", {})))
    tools = registry([a_tool("look", lambda: "[]")])
    run = start(tools=["look"], available=tools, max_steps=20)
    with suppress(Killed):
        advance(run, tools=tools, broker=Models(broker, killed_at_the_third))
    worker_dies(run)
    run = advance(run, tools=tools)
    assert (run.status, run.incomplete_reason) == ("incomplete", "loop")
    assert len(model.requests) == 4


def test_a_step_that_takes_down_worker_after_worker_ends_the_run(model, die_at, advance):
    model.answer_with(by_turn(ask(("poison", {})), say("Fine.")))
    run, tools, once_more = die_at("poison", lambda: "")
    once_more()
    once_more()
    run = advance(run, tools=tools)
    assert run.status == "failed"
    assert run.last_error == {
        "code": "worker_lost",
        "message": "The worker was lost 3 times during step 2.",
    }
    assert [step.status for step in run.steps.all()] == ["completed", "failed"]
    assert len(model.requests) == 1


@pytest.mark.parametrize("number", range(4, 24, 4))
def test_a_providers_signature_goes_back_as_it_came_whichever_worker_sends_it(
    model, interrupted, advance, counter, number
):
    body = json.loads(ask(("count", {"by": 1}), ("count", {"by": 2})).body)
    signature = {"google": {"thought_signature": "c2lnLWJ5dGVzLTE="}}
    body["choices"][0]["message"]["tool_calls"][0]["extra_content"] = signature
    model.answer_with(by_turn(Reply(body=json.dumps(body).encode()), say("Counted.")))

    run = advance(interrupted(number), tools=counter)

    assert run.output_text == "Counted."
    asked = model.requests[-1].messages[1]
    assert [call.get("extra_content") for call in asked["tool_calls"]] == [signature, None]
    assert "x_origin" not in asked
