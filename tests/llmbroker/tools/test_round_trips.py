"""Schema → call → value: whatever a signature allows arrives as the very value that was sent."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypedDict
from uuid import UUID

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import to_jsonable_python

from llmbroker import BadArgumentsError, Function
from llmbroker.tools.written import WrittenArguments


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Spot:
    """A spot."""

    name: str
    size: int = 1


class Span(TypedDict):
    """A span."""

    start: int
    label: str


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)

Hinted = tuple[Any, st.SearchStrategy[Any]]
"""A type hint, and the values that it allows."""

LEAVES: list[Hinted] = [
    (str, TEXT),
    (int, INTEGERS),
    (float, FLOATS),
    (bool, st.booleans()),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    (Color, st.sampled_from(Color)),
    (dt.date, st.dates()),
    (dt.datetime, st.datetimes(timezones=st.just(dt.UTC))),
    (dt.timedelta, st.timedeltas(dt.timedelta(-99), dt.timedelta(99))),
    (UUID, st.uuids()),
    (Decimal, st.decimals(-999, 999, places=2)),
    (Spot, st.builds(Spot, TEXT, INTEGERS)),
    (Span, st.fixed_dictionaries({"start": INTEGERS, "label": TEXT})),
    (int | str, INTEGERS | TEXT),
]


def nested(inner: st.SearchStrategy[Hinted]) -> st.SearchStrategy[Hinted]:
    def list_of(each: Hinted) -> Hinted:
        return list[each[0]], st.lists(each[1], max_size=3)

    def dict_of(each: Hinted) -> Hinted:
        return dict[str, each[0]], st.dictionaries(TEXT, each[1], max_size=3)

    def maybe(each: Hinted) -> Hinted:
        return each[0] | None, st.none() | each[1]

    def pair_of(each: Hinted) -> Hinted:
        return tuple[each[0], bool], st.tuples(each[1], st.booleans())

    return st.one_of(*(inner.map(shape) for shape in (list_of, dict_of, maybe, pair_of)))


HINTED = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=4)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Function[..., Any], dict[str, Any]]:
    """A function that gives its arguments back, and arguments for it."""
    hinted = draw(st.lists(HINTED, min_size=1, max_size=4))
    values = {f"p{index}": draw(each[1]) for index, each in enumerate(hinted)}
    return function_of([each[0] for each in hinted]), values


def function_of(hints: list[Any]) -> Function[..., Any]:
    names = [f"p{index}" for index in range(len(hints))]
    namespace: dict[str, Any] = {}
    source = f"def echo({', '.join(names)}): return {{{', '.join(f'{n!r}: {n}' for n in names)}}}"
    exec(source, namespace)  # noqa: S102 - a signature made at run time
    echo: Callable[..., dict[str, Any]] = namespace["echo"]
    echo.__annotations__ = dict(zip(names, hints, strict=True))
    return Function.of(echo)


def sent(values: dict[str, Any]) -> dict[str, Any]:
    """The values as they arrive: as JSON, with decimals as a model writes them."""
    return json.loads(json.dumps(to_jsonable_python(as_numbers(values))))


def as_numbers(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: as_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_numbers(each) for each in value]
    return tuple(map(as_numbers, value)) if isinstance(value, tuple) else value


SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(calls())
def test_what_is_sent_arrives(call: tuple[Function[..., Any], dict[str, Any]]) -> None:
    function, values = call
    assert function.call(sent(values)) == values


@SLOW
@given(calls())
def test_what_is_accepted_fits_the_schema_that_the_model_was_shown(
    call: tuple[Function[..., Any], dict[str, Any]],
) -> None:
    function, values = call
    jsonschema.validate(sent(values), function.parameters)


@SLOW
@given(calls())
def test_numbers_objects_and_lists_sent_as_text_arrive_all_the_same(
    call: tuple[Function[..., Any], dict[str, Any]],
) -> None:
    function, values = call
    shown = function.parameters["properties"]
    texts = {
        name: value if isinstance(value, str) or allows_text(shown[name]) else json.dumps(value)
        for name, value in sent(values).items()
    }
    assert function.call(texts) == values


@SLOW
@given(calls())
def test_a_schema_used_as_one_written_by_hand_changes_nothing_that_fits_it(
    call: tuple[Function[..., Any], dict[str, Any]],
) -> None:
    function, values = call
    arguments = sent(values)
    assert WrittenArguments(function.parameters).validated(arguments) == arguments


@SLOW
@given(st.dictionaries(TEXT, st.none() | st.booleans() | INTEGERS | TEXT | st.lists(TEXT)))
def test_any_arguments_at_all_give_a_value_or_say_which_of_them_is_wrong(
    arguments: dict[str, Any],
) -> None:
    def book(name: str, nights: int, spot: Spot, spans: list[Span] | None = None) -> str:
        return name

    with contextlib.suppress(BadArgumentsError):
        assert Function.of(book).call(arguments) == arguments["name"]


def allows_text(schema: dict[str, Any]) -> bool:
    """Whether text is a value of its own there, and so must not be read as anything else."""
    kinds = [schema.get("type"), *(each.get("type") for each in schema.get("anyOf", ()))]
    return "string" in kinds
