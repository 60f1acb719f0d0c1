"""A worker takes a run from queued to its answer."""

import pytest

from agents.models import Run
from agents.services.definitions import create_agent
from tests.agents.helpers import MODEL_KEY, a_tool, summary
from tests.support.model_server import ask, completion, say

pytestmark = pytest.mark.django_db


def test_a_run_ends_with_the_models_answer(model, start, advance):
    model.script(say("Monday."))
    run = advance(start("What day is it?"))
    assert (run.status, run.output_text) == ("completed", "Monday.")
    assert run.usage["total_tokens"] == 15
    assert run.started_at <= run.ended_at
    assert run.lease_until is None


def test_tools_run_in_the_order_asked_and_the_model_sees_their_results(model, start, advance):
    model.script(
        ask(("today", {"timezone": "Asia/Tashkent"}), ("calculate", {"expression": "30*1.8+32"})),
        say("It is 86 °F."),
    )
    run = advance(start(tools=["today", "calculate"]))
    assert summary(run) == [
        ("model_call", "tested", "completed"),
        ("tool_call", "today", "completed"),
        ("tool_call", "calculate", "completed"),
        ("model_call", "tested", "completed"),
    ]
    today, calculate = run.steps.filter(kind="tool_call")
    assert "Asia/Tashkent" in today.result
    assert (calculate.arguments, calculate.result) == ({"expression": "30*1.8+32"}, "86")
    assert model.requests[1].messages[-2:] == [
        {"role": "tool", "tool_call_id": "call_1", "content": today.result},
        {"role": "tool", "tool_call_id": "call_2", "content": "86"},
    ]


def test_usage_is_summed_over_the_model_calls(model, start, advance):
    model.script(
        ask(("today", {}), usage=(10, 5)), ask(("today", {}), usage=None), say("x", usage=(20, 7))
    )
    run = advance(start(tools=["today"]))
    assert {name: run.usage[name] for name in ("prompt_tokens", "completion_tokens")} == {
        "prompt_tokens": 30,
        "completion_tokens": 12,
    }
    assert [step.usage and step.usage["total_tokens"] for step in run.steps.all()] == [
        15, None, None, None, 27,
    ]  # fmt: skip


def test_only_the_runs_own_tools_are_offered_and_run(model, start, advance):
    model.script(ask(("calculate", {"expression": "1"})), say("I cannot."))
    run = advance(start(tools=["today"]))
    offered = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert offered == ["today"]
    step = run.steps.get(kind="tool_call")
    assert step.status == "failed"
    assert step.result == "Unknown tool calculate. Available tools: today"


def test_without_tools_none_are_sent(model, start, advance):
    model.script(say("Hello."))
    advance(start("Hi"))
    assert "tools" not in model.requests[0].body


def test_the_run_pays_and_is_journaled_as_its_scope(model, start, advance, broker, alice):
    model.script(ask(("today", {})), say("Done."))
    run = advance(start(tools=["today"], operation="greeting", trace_id="t-1"))
    calls = broker.calls(trace_id="t-1")
    assert {(call.scope, call.operation) for call in calls} == {(str(alice.scope.id), "greeting")}
    assert {str(step.call_id) for step in run.steps.filter(kind="model_call")} == {
        call.id for call in calls
    }
    assert model.requests[0].authorization == f"Bearer {MODEL_KEY}"


def test_more_steps_than_allowed_leave_the_run_incomplete(model, start, advance):
    model.script(*[ask(("today", {})) for _ in range(3)])
    run = advance(start(tools=["today"], max_steps=2))
    assert (run.status, run.incomplete_reason) == ("incomplete", "max_steps")
    assert len(model.requests) == 2
    assert run.steps.filter(kind="model_call").count() == 2


def test_an_answer_cut_at_the_token_limit_is_incomplete_and_kept(model, start, advance):
    model.script(completion({"role": "assistant", "content": "It is Mo"}, finish_reason="length"))
    run = advance(start())
    assert (run.status, run.incomplete_reason) == ("incomplete", "max_tokens")
    assert run.output_text == "It is Mo"


def test_a_run_tells_its_story_in_numbered_events(model, start, advance):
    model.script(ask(("calculate", {"expression": "1+1"})), say("2"))
    run = advance(start(tools=["calculate"]))
    events = list(run.events.values_list("sequence_number", "type"))
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert [kind for _, kind in events] == [
        "run.queued",
        "run.in_progress",
        "step.started",
        "step.completed",
        "usage.updated",
        "tool_call.created",
        "step.started",
        "tool_call.output",
        "step.completed",
        "step.started",
        "step.completed",
        "usage.updated",
        "message.completed",
        "run.completed",
    ]
    output = run.events.get(type="tool_call.output")
    assert output.data == {
        "step": 2, "tool_call_id": "call_1", "name": "calculate", "outcome": "success",
    }  # fmt: skip


def test_a_finished_run_is_left_alone(model, start, advance):
    model.script(say("Done."))
    run = advance(start())
    before = Run.objects.filter(id=run.id).values().get()
    advance(run)
    assert Run.objects.filter(id=run.id).values().get() == before
    assert len(model.requests) == 1


def test_cyrillic_uzbek_and_emoji_arrive_unharmed(model, complete):
    text = "Об-ҳаво қандай? 🌤 Ўзбекистон"
    model.script(ask(("echo", {"text": text})), say(text))
    run = complete(text, tools=[a_tool("echo", lambda text: text)])
    assert run.output_text == text
    assert run.steps.get(kind="tool_call").result == text
    assert model.requests[0].messages[0]["content"] == text


def test_an_agents_instructions_come_first(model, start, advance, alice, native):
    values = {"slug": "helper", "name": "Helper", "instructions": "Be brief.", "tools": ["today"]}
    agent = create_agent(tenant=alice.tenant, available=native, values=values)
    model.script(say("Ok."))
    run = advance(start("Hi", agent="helper"))
    assert [message["role"] for message in model.requests[0].messages] == ["system", "user"]
    assert (run.agent, run.tools, run.operation) == (agent, ["today"], "helper")
