"""Schemas that a provider can enforce while it generates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import signatures
from llmbroker import Function
from llmbroker.wire.closed_schema import closed
from tests.llmbroker.tools.expected import INTEGER, NULL, STRING, any_of


def test_every_object_is_closed_and_what_was_optional_may_be_null() -> None:
    def send(to: str, place: signatures.Point, cc: str = "", copies: int | None = None) -> str:
        return f"{to}{place}{cc}{copies}"

    strict = Function.of(send, strict=True)
    parameters = strict.parameters
    assert strict.schema["function"]["strict"] is True
    assert parameters["required"] == ["to", "place", "cc", "copies"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["cc"] == {
        "description": 'Null means "".',
        "anyOf": [STRING, NULL],
    }
    assert parameters["properties"]["copies"] == any_of(INTEGER, NULL)
    place = parameters["properties"]["place"]
    assert (place["required"], place["additionalProperties"]) == (["lat", "lon"], False)


def test_null_is_the_default_s_name() -> None:
    def send(to: str, place: signatures.Point, cc: str = "nobody") -> str:
        return f"{to} {place.lon} {cc}"

    given = {"to": "ann", "place": {"lat": 1, "lon": None}, "cc": None}
    assert Function.of(send, strict=True).call(given) == "ann 0.0 nobody"


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (signatures.containers, "counts allows any name"),
        (signatures.unannotated, "topic allows any value"),
        (signatures.variadic, "the whole object allows any name"),
    ],
)
def test_what_cannot_be_strict_is_refused(function: Callable[..., Any], what: str) -> None:
    with pytest.raises(ValueError, match=f"{function.__name__} has no strict schema: {what}"):
        Function.of(function, strict=True).schema  # noqa: B018 - reading it is the test


@pytest.mark.parametrize("function", signatures.SIGNATURES, ids=lambda each: each.__name__)
def test_strict_schemas_say_only_what_strict_schemas_may(function: Callable[..., Any]) -> None:
    try:
        parameters = Function.of(function, strict=True).parameters
    except ValueError:
        return
    assert closed(parameters) == parameters  # as the wire wants it, to send it as strict
    for node in nodes(parameters):
        assert "default" not in node
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])


def nodes(schema: Any) -> list[dict[str, Any]]:
    """All objects inside a schema that are schemas themselves."""
    if isinstance(schema, list):
        return [node for each in schema for node in nodes(each)]
    if not isinstance(schema, dict):
        return []
    inside = [each for key, each in schema.items() if key not in ("properties", "$defs")]
    named = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    return [schema, *nodes(inside), *nodes(named)]
