"""ToolLoop without any I/O: what it sends, what it accepts, what it keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from llmbroker import ToolLoop, ToolLoopLimitError, Usage
from llmbroker.tools.execution import as_text, execute
from llmbroker.tools.loop import ToolCall, wire_name

ASKED = [{"role": "user", "content": "read them"}]


@dataclass
class FakeReply:
    """What a model said, as any caller's reply gives it."""

    text: str = ""
    tool_calls: list[dict[str, Any]] | None = None
    usage: Usage | None = None


def wants(*calls: tuple[object, str, object]) -> FakeReply:
    """A reply that asks for calls given as (id, name, arguments)."""
    return FakeReply(
        tool_calls=[
            {"id": identity, "type": "function", "function": {"name": name, "arguments": given}}
            for identity, name, given in calls
        ]
    )


def test_results_go_back_in_the_order_asked_however_they_come_in() -> None:
    loop = ToolLoop(ASKED)
    first, second = loop.receive(wants(("a", "f", "{}"), ("b", "g", "{}")))

    loop.record(second, "two")
    assert [call.id for call in loop.pending] == ["a"]
    loop.record(first, "one")

    assert [(each["tool_call_id"], each["content"]) for each in loop.messages[-2:]] == [
        ("a", "one"),
        ("b", "two"),
    ]


def test_ids_that_repeat_or_are_missing_are_replaced_and_good_ones_kept() -> None:
    loop = ToolLoop(ASKED)
    calls = loop.receive(
        wants(("c1", "f", "{}"), ("c1", "f", "{}"), ("", "f", "{}"), (None, "f", "{}"))
    )
    for number, call in enumerate(calls):
        loop.record(call, str(number))
    (again,) = loop.receive(wants(("c1", "f", "{}")))

    ids = [call.id for call in calls]
    assert ids[0] == "c1"
    assert len({*ids, again.id}) == 5
    assert all(ids)
    assert [each["id"] for each in loop.messages[1]["tool_calls"]] == ids
    assert [each["content"] for each in loop.messages[2:6]] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("nothing", ["", "  ", None])
def test_no_arguments_at_all_are_an_empty_object(nothing: object) -> None:
    (call,) = ToolLoop(ASKED).receive(wants(("a", "f", nothing)))
    assert (call.arguments, call.problem) == ({}, None)


@pytest.mark.parametrize(
    "given", [{"city": "Oslo"}, '{"city":"Oslo"}', '"{\\"city\\":\\"Oslo\\"}"']
)
def test_an_object_is_an_object_however_it_is_packed(given: object) -> None:
    loop = ToolLoop(ASKED)
    (call,) = loop.receive(wants(("a", "f", given)))
    assert call.arguments == {"city": "Oslo"}
    replayed = loop.messages[-1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(replayed) == {"city": "Oslo"}


def test_broken_json_is_reported_with_its_place_and_never_replayed() -> None:
    loop = ToolLoop(ASKED)
    (call,) = loop.receive(wants(("a", "f", '{"mode": ful"}')))
    assert call.arguments is None
    assert "not valid JSON (line 1" in (call.problem or "")
    assert loop.messages[-1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_extra_fields_of_a_tool_call_survive_into_the_history() -> None:
    loop = ToolLoop(ASKED)
    reply = wants(("a", "f", "{}"))
    assert reply.tool_calls is not None
    reply.tool_calls[0]["extra_content"] = {"google": {"thought_signature": "c2ln"}}
    loop.receive(reply)
    kept = loop.messages[-1]["tool_calls"][0]["extra_content"]
    assert kept == {"google": {"thought_signature": "c2ln"}}


def test_the_limit_is_counted_in_calls_and_its_error_carries_everything() -> None:
    loop = ToolLoop(ASKED, max_steps=1)
    reply = wants(("a", "f", "{}"))
    reply.usage = Usage(3, 2, 5)
    (call,) = loop.receive(reply)
    loop.record(call, "x")
    assert loop.exhausted
    error = loop.limit_error()
    assert isinstance(error, ToolLoopLimitError)
    assert error.run_usage == Usage(3, 2, 5)
    assert error.messages[-1]["content"] == "x"


def test_a_loop_survives_json_in_the_middle_of_a_step() -> None:
    loop = ToolLoop(ASKED, tools=[{"type": "function", "function": {"name": "f"}}], max_steps=3)
    first, second = loop.receive(wants(("a", "f", "{}"), ("b", "f", '{"n":1}')))
    loop.record(first, "one")

    copy = ToolLoop.from_state(json.loads(json.dumps(loop.state())))

    assert [(call.id, call.arguments) for call in copy.pending] == [("b", {"n": 1})]
    copy.record(second, "two")
    assert [each["content"] for each in copy.messages[-2:]] == ["one", "two"]
    assert (copy.steps_taken, copy.max_steps, copy.tools) == (1, 3, loop.tools)


def test_calls_out_of_turn_are_refused() -> None:
    loop = ToolLoop(ASKED)
    (call,) = loop.receive(wants(("a", "f", "{}")))
    with pytest.raises(RuntimeError, match="out of turn"):
        loop.receive(FakeReply("x"))
    loop.record(call, "x")
    with pytest.raises(KeyError):
        loop.record(call, "again")


def test_usage_sums_what_is_known() -> None:
    loop = ToolLoop(ASKED)
    for usage in (Usage(1, 2, 3, cached_tokens=1), None, Usage(10, None, 20)):
        reply = wants((None, "f", "{}"))
        reply.usage = usage
        for call in loop.receive(reply):
            loop.record(call, "x")
    assert loop.run_usage == Usage(11, 2, 23, cached_tokens=1)


class Broken:
    """A value that cannot be shown."""

    def __str__(self) -> str:
        raise ZeroDivisionError("no text")


def call_of(name: str, **arguments: object) -> ToolCall:
    """A call with good arguments."""
    return ToolCall("a", name, "{}", arguments)


@pytest.mark.parametrize("value", [None, "", 0, False, [], {1, 2}, b"\xff\x00", float("nan")])
def test_any_value_gives_the_model_a_text_that_is_not_blank(value: object) -> None:
    assert execute(call_of("f"), {"f": lambda: value}).strip()


def test_a_value_whose_text_is_broken_is_that_call_s_failure() -> None:
    assert execute(call_of("f"), {"f": Broken}) == "Tool f failed: no text"


def test_text_that_no_store_can_hold_is_made_visible() -> None:
    assert as_text("a\x00b\ud83d") == "a␀b�"


def test_a_huge_result_is_cut_with_a_note_of_its_size() -> None:
    text = as_text("🌍" * 150_000)
    assert text.endswith("[cut: 150000 characters in all]")
    assert len(text) < 100_050
    text.encode()


def test_what_templates_glue_on_to_a_name_is_forgiven_and_nothing_else() -> None:
    tools = {"query_dataset": lambda: "ran", "search_docs": lambda: "ran"}
    for name in ("query_dataset<|channel|>commentary", "functions.query_dataset"):
        assert execute(call_of(name), tools) == "ran"
    for name in ("serch_docs", "", "multi_tool_use.parallel"):
        text = execute(call_of(name), tools)
        assert text.startswith(f"Unknown tool {name}")
        assert "query_dataset, search_docs" in text


def test_names_are_replayed_as_providers_accept_them() -> None:
    assert wire_name("a-b_1") == "a-b_1"
    assert wire_name("query<|x|>") == "query_x"
    assert wire_name("") == "unknown"
    assert len(wire_name("x" * 100)) == 64
