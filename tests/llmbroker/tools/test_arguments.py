"""What a model sends as arguments, and what it is told when they are no good."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from llmbroker import BadArgumentsError, Function, ToolLoop, run_tool_loop
from llmbroker.tools.written import WrittenArguments
from tests.llmbroker.tools.fakes import ASKED, Said, ScriptedModel, wants


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    city: str
    floor: int = 0


def even(number: int) -> int:
    if number % 2:
        raise ValueError("should be even")
    return number


def forecast(
    city: str,
    days: int = 3,
    unit: Unit = Unit.C,
    places: list[Place] | None = None,
    pairs: Annotated[int, AfterValidator(even)] = 2,
) -> str:
    """Forecast."""
    return f"{city} {days} {unit.value} {places} {pairs}"


FORECAST = Function.of(forecast)


def problems(**arguments: object) -> list[str]:
    with pytest.raises(BadArgumentsError) as caught:
        FORECAST.call(arguments)
    assert all(each.argument and each.reason for each in caught.value.problems)
    return [str(each) for each in caught.value.problems]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, ['argument "city" is missing']),
        ({"city": None}, ['argument "city" should be a valid string, not null']),
        ({"city": ["Oslo"]}, ['argument "city" should be a valid string, not ["Oslo"]']),
        (
            {"city": "Oslo", "days": "soon"},
            ['argument "days" should be a valid integer, not "soon"'],
        ),
        ({"city": "Oslo", "days": 1.5}, ['argument "days" should be a valid integer']),
        (
            {"city": "Oslo", "unit": "kelvin"},
            ["""argument "unit" should be 'celsius' or 'fahrenh"""],
        ),
        ({"city": "Oslo", "cty": 1}, ['argument "cty" is unknown (there are: city, days, unit']),
        ({"city": "Oslo", "pairs": 3}, ['argument "pairs" should be even, not 3']),
        (
            {"city": "Oslo", "places": [{"floor": 1}, {"city": "x", "floor": "up"}]},
            [
                'argument "places[0].city" is missing',
                'argument "places[1].floor" should be a valid integer, not "up"',
            ],
        ),
        ({"days": "x"}, ['argument "city" is missing', 'argument "days" should be a valid']),
    ],
)
def test_the_model_is_told_which_argument_is_wrong_and_why(
    arguments: dict[str, object], told: list[str]
) -> None:
    found = problems(**arguments)
    assert len(found) == len(told)
    for each, expected in zip(found, told, strict=True):
        assert each.startswith(expected)


def test_no_name_of_a_python_class_is_in_it() -> None:
    (problem,) = problems(city="Oslo", places=["nowhere"])
    assert problem == 'argument "places[0]" should be an object, not "nowhere"'


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"city": "Oslo", "days": "5"}, "Oslo 5 celsius None 2"),
        ({"city": "Oslo", "days": 5.0}, "Oslo 5 celsius None 2"),
        ({"city": 100}, "100 3 celsius None 2"),
        ({"city": "Oslo", "days": None}, "Oslo 3 celsius None 2"),
        ({"city": "Oslo", "places": "null"}, "Oslo 3 celsius None 2"),
        (
            {"city": "Oslo", "places": '[{"city": "x", "floor": "2"}]'},
            "Oslo 3 celsius [Place(city='x', floor=2)] 2",
        ),
        (
            {"city": "Oslo", "places": ['{"city": "x"}']},
            "Oslo 3 celsius [Place(city='x', floor=0)] 2",
        ),
    ],
)
def test_what_models_often_get_wrong_is_put_right(
    arguments: dict[str, object], result: str
) -> None:
    before = json.dumps(arguments)
    assert FORECAST.call(arguments) == result
    assert json.dumps(arguments) == before


def test_text_that_looks_like_json_stays_text_where_text_is_wanted() -> None:
    def note(text: str, either: int | str = "") -> str:
        return f"{text!r} {either!r}"

    assert Function.of(note).call({"text": '{"a": 1}', "either": "5"}) == "'{\"a\": 1}' '5'"


@pytest.mark.parametrize("number", ["NaN", "inf", float("nan")])
def test_numbers_are_numbers(number: object) -> None:
    def double(value: float) -> float:
        return value * 2

    with pytest.raises(BadArgumentsError, match='argument "value"'):
        Function.of(double).call({"value": number})


WRITTEN = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "cc": {"type": "string", "default": ""},
        "copies": {"type": "integer"},
        "kind": {"type": "string", "enum": ["note", "letter"]},
        "opts": {"type": "object", "properties": {"urgent": {"type": "boolean"}}},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
    },
    "required": ["to", "ghost"],
}


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        ({"to": "ann"}, {"to": "ann"}),
        ({"to": 7, "copies": "2"}, {"to": "7", "copies": 2}),
        ({"to": "ann", "cc": None, "tags": None}, {"to": "ann", "tags": None}),
        ({"to": "ann", "opts": '{"urgent": "true"}'}, {"to": "ann", "opts": {"urgent": True}}),
        ({"to": "ann", "tags": '["a"]'}, {"to": "ann", "tags": ["a"]}),
        ({"to": "ann", "extra": "x"}, {"to": "ann", "extra": "x"}),
    ],
)
def test_a_schema_written_by_hand_is_followed_with_the_same_indulgence(
    sent: dict[str, Any], arrives: dict[str, Any]
) -> None:
    assert WrittenArguments(WRITTEN).validated(sent) == arrives


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({}, 'argument "to" is missing'),
        ({"to": "a", "copies": "many"}, 'argument "copies" should be of type integer, not "many"'),
        (
            {"to": "a", "kind": "poem"},
            'argument "kind" should be one of "note", "letter", not "poem"',
        ),
        (
            {"to": "a", "opts": {"urgent": 3}},
            'argument "opts.urgent" should be of type boolean, not 3',
        ),
        ({"to": "a", "tags": ["a", {}]}, 'argument "tags[1]" should be of type string, not {}'),
    ],
)
def test_and_what_breaks_it_is_told(sent: dict[str, Any], told: str) -> None:
    with pytest.raises(BadArgumentsError) as caught:
        WrittenArguments(WRITTEN).validated(sent)
    assert str(caught.value) == told


def test_rarer_rules_of_a_written_schema_hold_as_well() -> None:
    arguments = WrittenArguments(
        {
            "type": "object",
            "properties": {
                "code": {"type": "string", "pattern": "^[A-Z]+$"},
                "size": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
            },
        }
    )
    assert arguments.validated({"code": "AB", "size": "7"}) == {"code": "AB", "size": 7}
    with pytest.raises(BadArgumentsError, match="argument \"code\" 'ab' does not match"):
        arguments.validated({"code": "ab"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "str"},
        {"type": 7, "properties": 3, "required": 1},
        {"properties": {"a": {"pattern": "("}}},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
    ],
)
def test_a_schema_that_makes_no_sense_forbids_nothing_and_fetches_nothing(
    schema: dict[str, Any],
) -> None:
    assert WrittenArguments(schema).validated({"a": "b"}) == {"a": "b"}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


@pytest.mark.parametrize("nothing", [None, "", " \n", "{}"])
def test_no_arguments_are_an_error_where_some_are_needed_and_none_elsewhere(
    nothing: object,
) -> None:
    called: list[str] = []
    model = ScriptedModel(wants(("get_weather", nothing), ("now", nothing)), Said("ok"))

    run_tool_loop(
        model,
        ASKED,
        tools=[WEATHER],
        dispatch={"get_weather": called.append, "now": lambda: "noon"},
    )

    assert model.results == ['Tool get_weather failed: argument "city" is missing', "noon"]
    assert called == []


@pytest.mark.parametrize(
    ("sent", "runs"),
    [
        ({"city": "Oslo"}, True),
        ('"{\\"city\\": \\"Oslo\\"}"', True),
        ('{"city":"Bergen","city":"Oslo"}', True),
        ('{"city":"Os\nlo"}', True),
        ("[1,2]", False),
        ('"Oslo"', False),
        ("null", False),
        ('{"city": Oslo}', False),
    ],
)
def test_only_an_object_reaches_a_tool_and_the_history_stays_valid(
    sent: object, runs: bool
) -> None:
    called: list[str] = []

    def get_weather(city: str) -> None:
        called.append(city)

    model = ScriptedModel(wants(("get_weather", sent)), Said("ok"))
    run_tool_loop(model, ASKED, tools=[WEATHER], dispatch={"get_weather": get_weather})

    assert bool(called) is runs
    if not runs:
        assert model.results[0].startswith("Tool get_weather failed: the arguments are")
        assert "JSON object" in model.results[0]
    replayed = model.sent[-1][1]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(replayed), dict)


@pytest.mark.parametrize("digits", ["18446744073709551617", "-9223372036854775809", "9" * 5000])
def test_a_number_that_would_arrive_as_another_is_not_passed_on(digits: str) -> None:
    called: list[object] = []
    model = ScriptedModel(
        wants(
            ("pay", f'{{"wei": {digits}}}'),
            ("pay", f'{{"wei": "{digits[:30]}"}}'),
            ("pay", '{"wei": 9223372036854775807}'),
        ),
        Said("ok"),
    )

    def pay(wei: int | str) -> None:
        called.append(wei)

    run_tool_loop(model, ASKED, dispatch={"pay": pay})

    assert "an integer of more than 64 bits" in model.results[0]
    assert sorted(called, key=str) == sorted([digits[:30], 2**63 - 1], key=str)


CUT = '{"path":"notes.md","content":"# Plan\\nStep one: coll'
BROKEN = '{"mode": ful"}'


def test_arguments_cut_by_the_token_limit_are_told_from_broken_ones() -> None:
    loop = ToolLoop(ASKED)
    (cut,) = loop.receive(wants(("write_file", CUT), finish_reason="length"))
    loop.record(cut, cut.problem or "")
    (broken,) = loop.receive(wants(("list_windows", BROKEN), finish_reason="tool_calls"))

    assert (cut.arguments, broken.arguments) == (None, None)
    assert "token limit" in (cut.problem or "")
    assert "not valid JSON" in (broken.problem or "")
    assert "token limit" not in (broken.problem or "")


def test_the_cap_of_the_request_tells_it_where_the_server_does_not() -> None:
    from llmbroker import Usage

    model = ScriptedModel(
        wants(("write_file", CUT), finish_reason="tool_calls", usage=Usage(200, 64, 264)),
        Said("ok"),
    )
    run_tool_loop(
        model, ASKED, dispatch={"write_file": lambda **_: "ran"}, params={"max_tokens": 64}
    )
    assert "token limit" in model.results[0]


def test_a_cut_before_the_first_argument_is_no_call_without_arguments() -> None:
    loop = ToolLoop(ASKED)
    whole, cut = loop.receive(
        wants(("now", "{}"), ("wipe", "{}"), finish_reason="length"),
    )
    assert whole.arguments == {}
    assert cut.arguments is None


def test_the_model_is_asked_again_twice_and_then_the_run_ends_with_its_reason() -> None:
    loop = ToolLoop(ASKED, max_steps=50)
    for _ in range(3):
        assert not loop.exhausted
        (call,) = loop.receive(wants(("write_file", CUT)))
        loop.record(call, call.problem or "")
    assert loop.exhausted
    assert loop.limit_error().reason == "invalid_arguments"


def test_a_turn_that_can_be_read_starts_the_count_anew() -> None:
    loop = ToolLoop(ASKED, max_steps=50)
    for sent in (CUT, CUT, "{}", CUT, CUT):
        (call,) = loop.receive(wants(("write_file", sent)))
        loop.record(call, sent)
    assert not loop.exhausted
