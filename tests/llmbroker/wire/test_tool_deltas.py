"""Streamed tool calls, whatever a server's habits with index, id and name."""

from __future__ import annotations

import json

import pytest

from tests.llmbroker.wire.streams import (
    DONE,
    called,
    chunk,
    completion,
    fragment,
    read,
    tool_fragment,
)

END = chunk(finish="tool_calls") + DONE
OSLO, UTC = '{"city":"Oslo"}', '{"tz":"UTC"}'
BOTH = [("A", "get_weather", OSLO), ("B", "get_time", UTC)]


def test_fragments_by_index_as_openai_sends_them() -> None:
    stream = [
        tool_fragment("", "get_weather", index=0, id="A", type="function"),
        tool_fragment('{"city":', index=0),
        tool_fragment('"Oslo"}', index=0),
        tool_fragment("", "get_time", index=1, id="B", type="function"),
        tool_fragment(UTC, index=1),
    ]

    deltas, whole = read([*stream, END])

    assert called(whole) == BOTH
    assert [(d.index, d.id, d.name, d.text) for d in deltas] == [
        (0, "A", "get_weather", ""),
        (0, None, None, '{"city":'),
        (0, None, None, '"Oslo"}'),
        (1, "B", "get_time", ""),
        (1, None, None, UTC),
    ]
    assert whole.message["content"] is None
    assert "x_origin" not in whole.message


def test_fragments_of_two_calls_may_be_mixed() -> None:
    stream = [
        tool_fragment("", "get_weather", index=0, id="A"),
        tool_fragment("", "get_time", index=1, id="B"),
        tool_fragment('{"city":', index=0),
        tool_fragment('{"tz":', index=1),
        tool_fragment('"Oslo"}', index=0),
        tool_fragment('"UTC"}', index=1),
    ]

    assert called(completion(*stream, END)) == BOTH


def test_without_an_index_a_fragment_without_an_id_goes_to_the_call_opened_last() -> None:
    stream = [
        tool_fragment("", "get_weather", id="A"),
        tool_fragment('{"city":'),
        tool_fragment('"Oslo"}'),
        tool_fragment("", "get_time", id="B"),
        tool_fragment(UTC),
    ]

    assert called(completion(*stream, END)) == BOTH


def test_two_calls_without_index_in_one_delta_are_two() -> None:
    calls = [fragment(OSLO, "get_weather", id="A"), fragment(UTC, "get_time", id="B")]

    assert called(completion(chunk({"tool_calls": calls}), END)) == BOTH


def test_a_new_id_opens_a_call_though_the_index_is_always_0() -> None:
    stream = [
        tool_fragment(OSLO, "get_weather", index=0, id="A"),
        tool_fragment(UTC, "get_time", index=0, id="B"),
    ]

    assert called(completion(*stream, END)) == BOTH


@pytest.mark.parametrize("index", [{}, {"index": 0}])
@pytest.mark.parametrize("second", ["get_time", "get_weather"])
def test_whole_calls_with_neither_id_nor_a_telling_index_are_kept_apart(
    index: dict[str, int], second: str
) -> None:
    stream = [tool_fragment(OSLO, "get_weather", **index), tool_fragment(UTC, second, **index)]

    calls = called(completion(*stream, END))

    assert [call[1:] for call in calls] == [("get_weather", OSLO), (second, UTC)]
    assert len({identity for identity, _, _ in calls}) == 2


def test_a_name_and_an_id_repeated_on_each_fragment_count_once() -> None:
    stream = [
        tool_fragment(piece, "lookup_order", index=0, id="77")
        for piece in ('{"order', '_id":', "41}", "")
    ]

    deltas, whole = read([*stream, END])

    assert called(whole) == [("77", "lookup_order", '{"order_id":41}')]
    assert [delta.name for delta in deltas if delta.name] == ["lookup_order"]
    assert [delta.id for delta in deltas if delta.id] == ["77"]


def test_a_name_cut_in_two_is_joined_and_an_empty_piece_does_not_erase_it() -> None:
    stream = [
        tool_fragment("", "lookup", index=0, id="78"),
        tool_fragment("", "_order", index=0),
        tool_fragment('{"order_id":41}', "", index=0),
    ]

    assert called(completion(*stream, END)) == [("78", "lookup_order", '{"order_id":41}')]


@pytest.mark.parametrize("index", [str, float])
def test_an_index_written_as_text_or_with_a_point_is_an_index(index: type) -> None:
    stream = [
        tool_fragment("", "get_weather", index=index(0), id="A"),
        tool_fragment("", "get_time", index=index(1), id="B"),
        tool_fragment('{"city":', index=index(0)),
        tool_fragment('{"tz":', index=index(1)),
        tool_fragment('"Oslo"}', index=index(0)),
        tool_fragment('"UTC"}', index=index(1)),
    ]

    assert called(completion(*stream, END)) == BOTH


@pytest.mark.parametrize("indexes", [(0, 0, 0, 1, 1), (None,) * 5])
def test_a_new_id_on_a_fragment_without_a_name_opens_no_call(
    indexes: tuple[int | None, ...],
) -> None:
    pieces = [
        ("get_weather", ""),
        (None, '{"city":'),
        (None, '"Oslo"}'),
        ("get_time", ""),
        (None, UTC),
    ]
    stream = [
        tool_fragment(arguments, name, index=index, id=identity)
        for (name, arguments), index, identity in zip(
            pieces, indexes, ["A", "x1", "x2", "B", "x3"], strict=True
        )
    ]

    assert called(completion(*stream, END)) == BOTH


def test_an_index_that_counts_the_fragments_opens_no_calls() -> None:
    stream = [
        tool_fragment("", "get_weather", index=0, id="A"),
        tool_fragment('{"city":', index=1, id="A"),
        tool_fragment('"Oslo"}', index=2, id="A"),
    ]

    assert called(completion(*stream, END)) == BOTH[:1]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
@pytest.mark.parametrize("name", ["get_weather", None])
@pytest.mark.parametrize("repeated", [OSLO, '{"city": "Oslo"}', {"city": "Oslo"}])
def test_a_call_that_is_said_once_more_at_the_end_is_made_once(
    index: dict[str, int], name: str | None, repeated: object
) -> None:
    stream = [
        tool_fragment('{"city":', "get_weather", id="A", **index),
        tool_fragment('"Oslo"}', **index),
        tool_fragment(repeated, name, id="A", **index),
    ]

    assert called(completion(*stream, END)) == BOTH[:1]


def test_an_id_used_twice_is_replaced_in_the_second_call() -> None:
    stream = [
        tool_fragment(OSLO, "get_weather", index=0, id="A"),
        tool_fragment(UTC, "get_time", index=1, id="A"),
    ]

    (first, *_), (second, *_) = called(completion(*stream, END))

    assert first == "A"
    assert second not in ("", "A")


def test_a_missing_id_is_made_once_and_is_the_same_in_delta_and_completion() -> None:
    stream = [tool_fragment("", "today", index=0, id=""), tool_fragment("{}", index=0, id=None)]

    deltas, whole = read([*stream, END])

    assert deltas[0].id == called(whole)[0][0] != ""
    assert called(read([*stream, END])[1]) == called(whole)


def test_an_id_that_comes_late_opens_no_second_call() -> None:
    stream = [tool_fragment("", "today", index=0), tool_fragment("{}", index=0, id="A")]

    assert [call[1:] for call in called(completion(*stream, END))] == [("today", "{}")]


@pytest.mark.parametrize("arguments", [{"city": "Oslo"}, None, ""])
def test_arguments_may_be_an_object_or_nothing(arguments: object) -> None:
    stream = tool_fragment(arguments, "get_weather", index=0, id="A")

    [(_, name, text)] = called(completion(stream, END))

    assert name == "get_weather"
    assert json.loads(text) == (arguments or {})


def test_two_calls_whose_arguments_are_objects_are_two() -> None:
    stream = [tool_fragment({"city": city}, "get_weather", index=0) for city in ("Oslo", "Bergen")]

    calls = called(completion(*stream, END))

    assert [arguments for _, _, arguments in calls] == [OSLO, '{"city":"Bergen"}']


def test_a_call_in_the_old_form_is_read() -> None:
    stream = [
        chunk({"function_call": {"name": "get_weather", "arguments": '{"city":'}}),
        chunk({"function_call": {"arguments": '"Oslo"}'}}),
        chunk(finish="function_call"),
    ]

    assert [call[1:] for call in called(completion(*stream, DONE))] == [("get_weather", OSLO)]


def test_a_surrogate_pair_cut_over_two_fragments_becomes_one_character() -> None:
    stream = [
        tool_fragment('{"city":"Oslo \ud83c', "get_weather", index=0, id="A"),
        tool_fragment('\udf0d"}', index=0),
    ]

    [(_, _, arguments)] = called(completion(*stream, END))

    assert arguments == '{"city":"Oslo 🌍"}'


def test_all_of_a_call_can_be_stored() -> None:
    extra = {"google": {"thought_signature": "c2ln\x00\ud83c"}}
    stream = tool_fragment('{"a":"\x00"}', "f\x00", index=0, id="A\x00", extra_content=extra)

    [call] = completion(stream, END).tool_calls or []

    assert (call["id"], call["function"]) == ("A␀", {"name": "f␀", "arguments": '{"a":"␀"}'})
    assert call["extra_content"] == {"google": {"thought_signature": "c2ln␀�"}}


def test_an_empty_fragment_is_no_call() -> None:
    stream = [chunk({"tool_calls": [{"index": 0, "function": {}}]}), chunk({"content": "hi"})]

    assert completion(*stream, DONE).tool_calls is None


def test_a_call_without_a_name_is_kept_so_that_the_model_can_be_told() -> None:
    stream = tool_fragment("{}", index=0, id="A")

    assert called(completion(stream, END)) == [("A", "", "{}")]


def test_signatures_on_streamed_calls_are_kept_for_their_sender() -> None:
    extra = {"google": {"thought_signature": "c2lnLWFi"}}
    stream = [
        tool_fragment(OSLO, "get_weather", index=0, id="A", extra_content=extra),
        tool_fragment(UTC, "get_time", index=1, id="B"),
    ]

    whole = completion(*stream, END)

    assert [call.get("extra_content") for call in whole.tool_calls or []] == [extra, None]
    assert whole.message["x_origin"]


@pytest.mark.parametrize("calls", [None, {}, "x", [None, 3, "x"], [[]]])
def test_tool_calls_that_are_none_are_left_out(calls: object) -> None:
    assert completion(chunk({"content": "hi", "tool_calls": calls}), DONE).tool_calls is None
