"""From a signature to the schema that a model reads."""

from __future__ import annotations

import datetime as dt
import functools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field

import llmbroker
from benchmarks import signatures
from llmbroker import Function, ToolContext
from tests.llmbroker.tools.expected import EXPECTED, INTEGER, MORE, NULL, STRING, any_of


@pytest.mark.parametrize("function", signatures.SIGNATURES, ids=lambda each: each.__name__)
def test_each_of_the_twenty_signatures_has_its_schema(function: Callable[..., Any]) -> None:
    properties, required = EXPECTED[function.__name__]
    expected = {"type": "object", "properties": properties, **MORE.get(function.__name__, {})}
    if required:
        expected["required"] = required
    assert Function.of(function).parameters == expected


def test_the_seed_s_hand_written_schema_is_what_its_function_gives() -> None:
    def get_weather(city: str) -> str:
        """Текущая погода в городе"""
        return f"В {city} сейчас 20°C"

    assert Function.of(get_weather).schema == {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Текущая погода в городе",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }


def test_the_second_seed_s_schema_too() -> None:
    def recommend(
        topic: Annotated[str, "Tavsiya so'ralayotgan mavzu"],
        rating: Annotated[Literal["good", "bad", "terrible"] | None, "Tavsiya sifati"] = None,
    ) -> str:
        """Berilgan mavzu bo'yicha tavsiya beradi."""
        return f"{topic}{rating}"

    parameters = Function.of(recommend).parameters
    assert parameters["required"] == ["topic"]
    assert parameters["properties"]["topic"]["description"] == "Tavsiya so'ralayotgan mavzu"
    assert parameters["properties"]["rating"] == {
        "description": "Tavsiya sifati",
        "anyOf": [{"type": "string", "enum": ["good", "bad", "terrible"]}, {"type": "null"}],
    }


@pytest.mark.parametrize(
    "function",
    [signatures.google, signatures.numpy, signatures.rest],
    ids=lambda each: each.__name__,
)
def test_a_docstring_s_sections_are_no_part_of_the_description(
    function: Callable[..., Any],
) -> None:
    assert Function.of(function).description == (
        "Forecast for some days.\n\nThe source is the national service."
    )


def test_annotated_wins_over_the_docstring_and_the_declaration_over_both() -> None:
    @llmbroker.function(name="plugin-weather", description="Declared.")
    def weather(city: Annotated[str, "Annotated."], day: Annotated[str, Field(description="F")]):
        """Documented.

        Args:
            city: Documented.
            day: Documented.
        """

    assert weather.name == "plugin-weather"
    assert weather.description == "Declared."
    assert weather.parameters["properties"]["city"]["description"] == "Annotated."
    assert weather.parameters["properties"]["day"]["description"] == "F"


def test_what_no_model_may_fill_is_not_in_the_schema() -> None:
    def note(text: str, context: ToolContext, again: ToolContext | None = None) -> str:
        return text

    assert Function.of(note).parameters["properties"] == {"text": STRING}


def test_a_method_has_no_self() -> None:
    class Plugin:
        @llmbroker.function
        def today(self, zone: str) -> str:
            """The date."""
            return zone

        def plain(self, zone: str) -> str:
            return zone

    plugin = Plugin()
    for method in (plugin.today, Function.of(plugin.plain)):
        assert method.parameters == {
            "type": "object",
            "properties": {"zone": STRING},
            "required": ["zone"],
        }
    assert plugin.today("UTC") == plugin.today.call({"zone": "UTC"}) == "UTC"


def test_a_partial_and_a_callable_object_are_functions_too() -> None:
    def power(base: int, exponent: int) -> int:
        """Raise to a power."""
        return base**exponent

    class Doubler:
        """Doubles."""

        def __call__(self, number: int) -> int:
            return number * 2

    square = Function.of(functools.partial(power, exponent=2))
    assert (square.name, square.call({"base": 3})) == ("power", 9)
    assert square.parameters["required"] == ["base"]
    assert Function.of(Doubler(), name="double").call({"number": "4"}) == 8


def test_parameters_may_be_called_as_pydantic_s_own_parts_are() -> None:
    def odd(schema: str, copy: bool, model_config: int, _hidden: str = "", json: str = "") -> str:
        return f"{schema}{copy}{model_config}{_hidden}{json}"

    given = {"schema": "s", "copy": True, "model_config": 1, "_hidden": "h", "title": "t"}
    assert list(Function.of(odd).parameters["properties"]) == [
        *("schema", "copy", "model_config", "_hidden", "json"),
    ]
    given.pop("title")
    assert Function.of(odd).call(given) == "sTrue1h"


def test_a_parameter_called_title_keeps_its_place() -> None:
    def book(title: str, description: str) -> str:
        return title + description

    assert Function.of(book).parameters["properties"] == {"title": STRING, "description": STRING}


def test_members_of_several_kinds_are_told_apart_by_type() -> None:
    class Level(IntEnum):
        LOW = 1

    class Mixed(Enum):
        ONE = 1
        TWO = "two"

    def pick(
        level: Level,
        mixed: Mixed,
        maybe: Literal["a", None],  # noqa: PYI061 - people write it so
        yes: Literal[True],
    ) -> str:
        return f"{level}{mixed}{maybe}{yes}"

    assert Function.of(pick).parameters["properties"] == {
        "level": {**INTEGER, "enum": [1]},
        "mixed": any_of({**INTEGER, "enum": [1]}, {**STRING, "enum": ["two"]}),
        "maybe": any_of({**STRING, "enum": ["a"]}, NULL),
        "yes": {"type": "boolean", "enum": [True]},
    }


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


def test_models_told_apart_by_a_field_are_alternatives_without_pointers() -> None:
    def feed(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
        return pet.kind

    text = json.dumps(Function.of(feed).parameters)
    assert "discriminator" not in text
    assert "$ref" not in text
    assert Function.of(feed).call({"pet": {"kind": "dog", "good": "true"}}) == "dog"


def test_annotations_may_name_what_only_the_surrounding_function_knows() -> None:
    @dataclass
    class Local:
        size: int

    class Span(TypedDict, total=False):
        start: int

    @llmbroker.function
    def measure(thing: Local, span: Span) -> int:
        return thing.size + span.get("start", 0)

    assert measure.call({"thing": {"size": 3}, "span": {}}) == 3


@llmbroker.function
def early(what: Later) -> int:
    """Declared before the class of its argument."""
    return what.size


@dataclass
class Later:
    size: int


def test_annotations_may_name_what_is_defined_later() -> None:
    assert early.call({"what": {"size": 2}}) == 2


def test_a_definition_used_often_and_large_stays_one() -> None:
    class Large(BaseModel):
        first: str = Field(description="x" * 150)
        second: str = Field(description="y" * 150)

    def compare(left: Large, right: Large) -> str:
        return left.first + right.first

    parameters = Function.of(compare).parameters
    assert parameters["properties"]["left"] == {"$ref": "#/$defs/Large"}
    assert list(parameters["$defs"]) == ["Large"]


def test_defaults_that_json_cannot_say_are_left_out() -> None:
    missing = object()

    def find(key: str, default: Any = missing, day: dt.date = dt.date(2026, 1, 5)):
        return default is missing

    properties = Function.of(find).parameters["properties"]
    assert properties["default"] == {}
    assert properties["day"] == {**STRING, "format": "date", "default": "2026-01-05"}
    assert Function.of(find).call({"key": "k"}) is True


def test_a_hint_without_a_schema_is_refused_by_name() -> None:
    class Handle:
        pass

    def use(name: str, handle: Handle) -> str:
        return name

    with pytest.raises(TypeError, match=r"function use, parameter handle: .*Handle"):
        Function.of(use).parameters  # noqa: B018 - reading it is the test


@pytest.mark.parametrize("name", ["sana.bugun", "two words", "x" * 65, "имя"])
def test_names_that_providers_refuse_are_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match="pass name="):
        Function.of(signatures.plain, name=name)
    with pytest.raises(ValueError, match="<lambda>"):
        Function.of(lambda: None)


def test_a_schema_written_by_hand_is_taken_as_it_is() -> None:
    written = {
        "type": "object",
        "properties": {"city": {"type": "string", "title": "City"}},
        "required": ["city", "ghost"],
        "x-note": 1,
    }

    @llmbroker.function(parameters=written)
    def weather(**arguments: Any) -> str:
        """Weather."""
        return str(arguments)

    before = json.dumps(written)
    assert weather.schema["function"]["parameters"] == written
    assert weather.call({"city": "Oslo"}) == "{'city': 'Oslo'}"
    assert json.dumps(written) == before


def test_importing_the_package_imports_no_pydantic() -> None:
    program = """
import sys, llmbroker
heavy = {"pydantic", "jsonschema", "docstring_parser"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
@llmbroker.function
def f(city: str) -> str:
    "Weather."
    return city
assert f("Oslo") == "Oslo"
assert not heavy & set(sys.modules), "declaring costs nothing yet"
assert f.call({"city": "Oslo"}) == "Oslo"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
