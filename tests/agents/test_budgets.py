"""What a run may use up: it ends as incomplete, and says of what there was no more."""

import threading
from decimal import Decimal

import pytest

from llmbroker import Broker, InMemoryRegistry, InMemoryStore, LLMConfig
from llmbroker.prices import Price
from tests.agents.helpers import MODEL_KEY, a_tool, registry
from tests.support.model_server import ask, by_turn, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def spend(model, start, advance):
    """``spend(**limits)``: a run whose model asks for a tool for ever, as it was left."""

    def spend(*, broker=None, **limits):
        tools = registry([a_tool("look", lambda **_: f"seen {len(model.requests)}")])
        run = start(available=tools, tools=["look"], **limits)
        options = {} if broker is None else {"broker": broker}
        return advance(run, tools=tools, **options)

    model.answer_with(lambda request: ask(("look", {}), ("look", {"again": 1})))
    return spend


@pytest.mark.parametrize(
    ("limits", "reason", "calls"),
    [
        ({"max_steps": 2}, "max_steps", 2),
        ({"max_tokens": 40}, "max_tokens", 3),
        ({"max_tool_calls": 3}, "budget", 2),
    ],
)
def test_a_run_stops_at_each_of_its_limits(spend, model, limits, reason, calls):
    run = spend(**limits)
    assert (run.status, run.incomplete_reason) == ("incomplete", reason)
    assert len(model.requests) == calls


def test_no_tool_runs_beyond_the_limit_of_tool_calls(spend):
    run = spend(max_tool_calls=3)
    assert run.steps.filter(kind="tool_call", status="completed").count() == 2
    assert run.steps.filter(kind="tool_call", status="cancelled").count() == 2


def test_money_is_counted_over_the_runs_calls(spend, model):
    config = LLMConfig("tested", model.base_url, "test-model", "MODEL_KEY")
    with Broker(
        InMemoryRegistry([config]),
        secrets={"MODEL_KEY": MODEL_KEY},
        store=InMemoryStore(),
        pricing=lambda config, usage, model: Price(4_000, "test"),
    ) as priced:
        run = spend(broker=priced, max_cost=Decimal("0.01"), max_steps=20)
    assert (run.status, run.incomplete_reason) == ("incomplete", "budget")
    assert len(model.requests) == 3
    assert {step.cost_micros for step in run.steps.filter(kind="model_call")} == {4_000}


def test_time_ends_a_model_call_that_is_under_way(model, start, advance):
    model.script(say("Too late.").after(3))
    run = advance(start(max_seconds=1))
    assert (run.status, run.incomplete_reason) == ("incomplete", "deadline")
    assert run.output_text is None


def test_time_ends_a_tool_that_hangs_and_the_run_with_it(model, start, advance):
    tools = registry([a_tool("hang", lambda: release.wait(20), timeout=30)])
    release = threading.Event()
    model.script(ask(("hang", {})))
    run = advance(start(available=tools, tools=["hang"], max_seconds=1), tools=tools)
    release.set()
    assert (run.status, run.incomplete_reason) == ("incomplete", "deadline")
    assert run.steps.get(name="hang").outcome == "timeout"
    assert (run.ended_at - run.started_at).total_seconds() < 4


def test_one_last_answer_is_asked_for_without_tools_where_that_was_wanted(model, start, advance):
    tools = registry([a_tool("look", lambda: "seen")])
    model.answer_with(by_turn(ask(("look", {})), say("As far as I can tell.")))
    run = start(available=tools, tools=["look"], max_steps=1, final_answer=True)
    run = advance(run, tools=tools)
    assert (run.status, run.incomplete_reason) == ("incomplete", "max_steps")
    assert run.output_text == "As far as I can tell."
    assert model.requests[-1].body["tool_choice"] == "none"
