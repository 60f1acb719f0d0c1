"""Whatever a model asks for and whatever a tool does: the model is told, and the run goes on."""

import asyncio
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from tests.agents.helpers import a_tool
from tests.support.model_server import ask, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(model, complete):
    """``told(("name", arguments), …, tools=…)``: what the model was told of each call."""

    def told(*calls, tools):
        model.script(ask(*calls), say("So be it."))
        run = complete(tools=tools)
        assert (run.status, run.output_text) == ("completed", "So be it.")
        steps = list(run.steps.filter(kind="tool_call"))
        sent = [m["content"] for m in model.requests[-1].messages if m["role"] == "tool"]
        assert sent == [step.result for step in steps], "a step shows what the model saw"
        assert all(text.strip() for text in sent)
        return steps

    return told


@pytest.mark.parametrize(
    "name", ["serch_docs", "", "multi_tool_use.parallel", "add", "SEARCH_DOCS", "x" * 5000, "п"]
)
def test_an_unknown_tool_is_named_and_the_known_ones_are_listed(told, model, name):
    (step,) = told((name, "{}"), tools=[a_tool("search_docs", dict), a_tool("other", dict)])
    assert step.status == "failed"
    assert step.result.startswith("Unknown tool ")
    assert step.result.endswith("Available tools: other, search_docs")
    (replayed,) = model.requests[-1].messages[-2]["tool_calls"]
    assert 1 <= len(replayed["function"]["name"]) <= 64


@pytest.mark.parametrize("name", ["query_dataset<|channel|>commentary", "functions.query_dataset"])
def test_a_known_name_with_a_templates_debris_is_that_tool(told, name):
    (step,) = told((name, '{"q": 1}'), tools=[a_tool("query_dataset", lambda q: f"rows of {q}")])
    assert (step.status, step.result) == ("completed", "rows of 1")


@pytest.mark.parametrize("arguments", ["{bad", "[1]", '"text"', "null", "7", "{'q': 1}"])
def test_arguments_that_are_no_object_run_nothing(told, arguments):
    ran = []
    (step,) = told(("find", arguments), tools=[a_tool("find", ran.append)])
    assert (step.status, step.outcome) == ("failed", "invalid_arguments")
    assert step.result.startswith("Tool find failed: ")
    assert ran == []


class Unprintable:
    def __str__(self):
        raise ZeroDivisionError("no text")

    __repr__ = __str__


def endless():
    values = []
    values.append(values)
    return values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.10"), "1.10"),
        (datetime(2026, 1, 5, tzinfo=UTC), "2026-01-05 00:00:00+00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1}, "{1}"),
        (float("nan"), "nan"),
        (None, "None"),
        ({("a", 1): 2}, "{('a', 1): 2}"),
        (endless(), "[[...]]"),
        (b"\xff\x00", r"b'\xff\x00'"),
    ],
)
def test_any_value_becomes_one_text(told, value, text):
    (step,) = told(("get", {}), tools=[a_tool("get", lambda: value)])
    assert (step.status, step.result) == ("completed", text)


@pytest.mark.parametrize("value", ["", "  \n"])
def test_a_blank_result_is_not_sent_blank(told, value):
    (step,) = told(("get", {}), tools=[a_tool("get", lambda: value)])
    assert step.status == "completed"
    assert step.result.strip()


def test_a_value_without_a_text_fails_its_own_call_only(told):
    bad, good = told(
        ("bad", {}),
        ("good", {}),
        tools=[a_tool("bad", Unprintable), a_tool("good", lambda: "fine")],
    )
    assert (bad.status, good.status) == ("failed", "completed")
    assert bad.result == "Tool bad failed: no text"
    assert good.result == "fine"


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyError("k"), Exception()])
def test_a_tool_that_raises_is_reported_in_its_words(told, error):
    def broken():
        raise error

    (step,) = told(("broken", {}), tools=[a_tool("broken", broken)])
    assert step.status == "failed"
    assert step.result.startswith("Tool broken failed: ")


def test_a_tool_that_exits_does_not_take_the_worker_along(told):
    (step,) = told(("quit", {}), tools=[a_tool("quit", lambda: sys.exit(1))])
    assert step.result.startswith("Tool quit failed: ")


def test_arguments_that_the_tool_does_not_take_are_reported(told):
    (step,) = told(("today", {"zone": "UTC"}), tools=[a_tool("today", lambda timezone: "x")])
    assert step.status == "failed"
    assert "zone" in step.result


def test_hung_tools_are_given_up_and_the_run_keeps_working(told):
    release = threading.Event()

    def hang(n):
        release.wait(30)
        return "late"

    began = time.monotonic()
    steps = told(
        *[("hang", {"n": n}) for n in range(12)],
        ("quick", {}),
        tools=[a_tool("hang", hang, timeout=0.02), a_tool("quick", lambda: "here")],
    )
    assert time.monotonic() - began < 5
    release.set()
    assert {step.outcome for step in steps[:-1]} == {"timeout"}
    assert {step.result for step in steps[:-1]} == {
        "Tool hang failed: timeout, no result within 0.02 s; it may still have taken effect"
    }
    assert steps[-1].result == "here"


async def sleeps():
    await asyncio.sleep(30)


async def ignores_that_it_is_cancelled():
    until = time.monotonic() + 1
    while time.monotonic() < until:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)


def uses_the_processor():
    until = time.monotonic() + 1
    while time.monotonic() < until:
        pass


@pytest.mark.parametrize(
    "hang", [lambda: time.sleep(1), sleeps, ignores_that_it_is_cancelled, uses_the_processor]
)
def test_a_tool_that_hangs_in_any_way_is_given_up_in_time(told, hang):
    (step,) = told(("hang", {}), tools=[a_tool("hang", hang, timeout=0.1)])
    assert step.outcome == "timeout"
    assert (step.ended_at - step.started_at).total_seconds() < 0.9


def test_a_late_result_appears_nowhere(model, complete):
    release, returned = threading.Event(), threading.Event()

    def late():
        release.wait(10)
        returned.set()
        return "late"

    def wait_for_it():
        release.set()
        return f"it has returned: {returned.wait(10)}"

    model.script(ask(("late", {})), ask(("wait_for_it", {})), say("Done."))
    run = complete(tools=[a_tool("late", late, timeout=0.02), a_tool("wait_for_it", wait_for_it)])
    first, second = run.steps.filter(kind="tool_call")
    assert "no result within" in first.result
    assert second.result == "it has returned: True"
    told = [message["content"] for message in model.requests[-1].messages[1:]]
    assert told[1::2] == [first.result, second.result]


@pytest.mark.parametrize(
    "value",
    ["[" + '{"id":1},' * 17_667 + "{}]", "x" * 199_999 + "🌍" * 10, "\x00\x1b[31m" * 50_000],
    ids=["json", "emoji", "control"],
)
def test_a_huge_result_is_cut_with_a_note_of_its_size(told, value):
    (step,) = told(("get", {}), tools=[a_tool("get", lambda: value)])
    assert len(step.result) < 110_000
    assert str(len(value)) in step.result[-100:]
    assert "\x00" not in step.result
    step.result.encode()


def test_a_huge_error_is_cut_as_well(told):
    def broken():
        raise RuntimeError("y" * 2_000_000)

    (step,) = told(("get", {}), tools=[a_tool("get", broken)])
    assert len(step.result) < 110_000


def test_tools_beyond_the_limit_of_a_turn_are_not_run(told):
    ran = []

    def count(n):
        ran.append(n)

    steps = told(*[("count", {"n": n}) for n in range(40)], tools=[a_tool("count", count)])
    assert sorted(ran) == list(range(32))
    assert steps[-1].result == "Tool count failed: at most 32 tools are run in one turn"


READ = ask(("read", '{"path": "a", "mode": "r"}'))
READ_DIFFERENTLY_WRITTEN = ask(("read", '{"mode":"r",  "path":"a"}'))
OTHER = ask(("read", {"path": "b", "mode": "r"}))


def test_the_same_call_with_the_same_result_is_pointed_out_and_then_ends_the_run(model, complete):
    model.script(READ, READ_DIFFERENTLY_WRITTEN, READ, READ, READ)
    run = complete(tools=[a_tool("read", lambda path, mode: "[]")], max_steps=20)
    assert (run.status, run.incomplete_reason) == ("incomplete", "loop")
    assert len(model.requests) == 4
    told = [message["content"] for message in model.requests[-1].messages[1:]][1::2]
    assert told[:2] == ["[]", "[]"]
    assert "3 times in a row" in told[2]


def test_the_same_call_twice_in_a_turn_is_noticed_turn_by_turn(model, complete):
    twice = ask(("read", '{"path": "a", "mode": "r"}'), ("read", '{"mode":"r", "path":"a"}'))
    model.answer_with(lambda request: twice)
    run = complete(tools=[a_tool("read", lambda path, mode: "[]")], max_steps=20)
    assert (run.status, run.incomplete_reason) == ("incomplete", "loop")
    assert len(model.requests) == 4


def test_the_same_unknown_call_for_ever_ends_the_run_as_well(model, complete):
    model.answer_with(lambda request: ask(("raed", {"path": "a"})))
    run = complete(tools=[a_tool("read", dict)], max_steps=20)
    assert (run.status, run.incomplete_reason) == ("incomplete", "loop")
    assert len(model.requests) == 4


def test_a_call_that_fails_for_ever_ends_the_run_as_well(model, complete):
    def broken(path, mode):
        raise OSError("no such file")

    model.answer_with(lambda request: READ)
    run = complete(tools=[a_tool("read", broken)], max_steps=20)
    assert (run.status, run.incomplete_reason) == ("incomplete", "loop")


def test_calls_that_take_turns_for_ever_are_ended_by_max_steps(model, complete):
    model.answer_with(lambda request: (READ, OTHER)[len(model.requests) % 2])
    run = complete(tools=[a_tool("read", lambda path, mode: "[]")], max_steps=6)
    assert (run.status, run.incomplete_reason) == ("incomplete", "max_steps")
    assert len(model.requests) == 6


def test_polling_goes_on_while_the_result_changes(model, complete):
    progress = iter(["10%", "40%", "80%", "90%", "95%", "done"])
    model.script(*[ask(("get_status", {})) for _ in range(6)], say("Done."))
    run = complete(tools=[a_tool("get_status", lambda: next(progress))], max_steps=20)
    assert (run.status, run.output_text) == ("completed", "Done.")


def test_unknown_tools_for_ever_fail_the_run_in_words(model, complete):
    model.answer_with(lambda request: ask((f"tool_{len(model.requests)}", {})))
    run = complete(tools=[a_tool("read", dict)], max_steps=50)
    assert run.status == "failed"
    assert run.last_error["code"] == "unknown_tool"
    assert len(model.requests) == 5


def test_unreadable_arguments_for_ever_fail_the_run_in_words(model, complete):
    model.answer_with(lambda request: ask(("read", "{" * len(model.requests))))
    run = complete(tools=[a_tool("read", dict)], max_steps=50)
    assert run.status == "failed"
    assert run.last_error["code"] == "invalid_arguments"


def test_ids_that_repeat_or_are_missing_still_pair_calls_with_results(model, complete):
    model.script(
        ask(("get", {"n": 1}), ("get", {"n": 2}), ids=("call_0", "call_0")),
        ask(("get", {"n": 3}), ids=("",)),
        say("Done."),
    )
    run = complete(tools=[a_tool("get", lambda n: f"value {n}")])
    messages = model.requests[-1].messages
    asked = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    answered = [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]
    assert len(set(asked)) == 3
    assert answered == list(zip(asked, ["value 1", "value 2", "value 3"], strict=True))
    assert asked == list(run.steps.filter(kind="tool_call").values_list("tool_call_id", flat=True))
