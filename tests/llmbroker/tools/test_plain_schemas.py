"""The schemas that are made without pydantic are those that pydantic makes."""

# ruff: noqa: PYI061, UP007, UP045 - hints as people write them, and made at run time

from __future__ import annotations

import json
import subprocess
import sys
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, Optional, Union

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from llmbroker.tools.docstrings import Documentation
from llmbroker.tools.plain import plain_parameters
from llmbroker.tools.signature import read_signature
from llmbroker.tools.typed import TypedArguments


class Color(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


class Mode(StrEnum):
    """A mode
    in two lines."""

    FAST = "fast"


class Mixed(Enum):
    ONE = 1
    TWO = "two"
    NONE = None


LEAVES: list[Any] = [
    *(str, int, float, bool, Any, Color, Level, Mode, Mixed),
    *(Literal["a"], Literal["a", 1, True], Literal["a", None], Literal[1, 2]),
]


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: dict[str, hint]),
        inner.map(lambda hint: Optional[hint]),
        inner.map(lambda hint: Annotated[hint, "In words."]),
        st.tuples(inner, inner).map(lambda pair: Union[pair]),
        st.tuples(inner, inner).map(lambda pair: Union[(None, *pair)]),
    )


HINTS = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=4)
NOTHING = object()
DEFAULTS = st.sampled_from(
    [NOTHING, NOTHING, NOTHING, None, 1, 1.5, True, "x", Color.RED, (1,), [1], object()]
)
WORDS = st.sampled_from([None, "Documented."])
PARAMETERS = st.lists(st.tuples(st.none() | HINTS, DEFAULTS, WORDS), min_size=1, max_size=3)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PARAMETERS)
def test_what_is_made_quickly_is_what_pydantic_makes(parameters: list[Any]) -> None:
    function, documentation = declared(parameters)
    signature = read_signature(function)
    plain = plain_parameters(signature, documentation)
    event("plain" if plain is not None else "left to pydantic")
    if plain is not None:
        typed = TypedArguments(signature, documentation, label="f", strict=False)
        assert unordered(plain) == unordered(typed.parameters)
        assert list(plain["properties"]) == list(typed.parameters["properties"])


def unordered(schema: Any) -> Any:
    """With the members of ``anyOf`` sorted: typing takes int | str and str | int for one."""
    if isinstance(schema, list):
        return [unordered(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    same = {key: unordered(each) for key, each in schema.items()}
    if "anyOf" in same:
        same["anyOf"] = sorted(same["anyOf"], key=lambda each: json.dumps(each, sort_keys=True))
    return same


def declared(parameters: list[Any]) -> tuple[Any, Documentation]:
    """A function with these hints, defaults and words."""

    names = [f"p{index}" for index in range(len(parameters))]
    defaults = {
        name: default
        for name, (_, default, _) in zip(names, parameters, strict=True)
        if default is not NOTHING
    }
    written = [f"{name}=defaults[{name!r}]" if name in defaults else name for name in names]
    namespace: dict[str, Any] = {"defaults": defaults}
    exec(f"def function(*, {', '.join(written)}): ...", namespace)  # noqa: S102
    function = namespace["function"]
    function.__annotations__ = {
        name: hint for name, (hint, _, _) in zip(names, parameters, strict=True) if hint is not None
    }
    words = {name: each for name, (_, _, each) in zip(names, parameters, strict=True) if each}
    return function, Documentation("", words)


def test_a_tool_of_plain_hints_is_declared_to_a_model_without_pydantic() -> None:
    program = """
import sys, llmbroker
@llmbroker.function
def f(city: str, days: int = 3, unit: str | None = None) -> str:
    "Weather."
    return city
assert f.schema
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
