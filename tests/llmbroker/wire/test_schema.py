"""Tool schemas, fitted to a provider."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from llmbroker.wire.profiles import PROFILES
from llmbroker.wire.schema import fitted


def tool(parameters: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": parameters, **fields}}


def fit(parameters: Any, family: str, **fields: Any) -> dict[str, Any]:
    """The function as it is sent; the tool given must stay as it was."""
    given = [tool(parameters, **fields)]
    before = copy.deepcopy(given)
    [sent] = fitted(given, PROFILES[family])
    assert given == before
    return sent["function"]


def an_object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
SEND_NOTE = an_object(
    "to",
    "ghost",
    to=TEXT,
    cc={"type": "string", "default": ""},
    meta={"type": "object"},
    opts={"type": "object", "properties": {"urgent": {"type": "boolean"}}},
)


# --- everywhere ---


@pytest.mark.parametrize("family", PROFILES)
def test_a_name_is_required_only_if_it_is_a_property(family: str) -> None:
    assert fit(SEND_NOTE, family)["parameters"]["required"] == ["to"]


@pytest.mark.parametrize("family", ["generic", "anthropic", "mistral"])
def test_elsewhere_the_schema_stays_as_it_is_and_strict_is_not_claimed(family: str) -> None:
    parameters = {**an_object("to", to=TEXT, at={"$ref": "#/$defs/T"}), "$defs": {"T": TEXT}}

    function = fit(parameters, family, strict=True, description="Sends a note.")

    assert function == {"name": "f", "description": "Sends a note.", "parameters": parameters}


@pytest.mark.parametrize("parameters", [None, {}])
def test_a_function_without_parameters_takes_an_empty_object(parameters: Any) -> None:
    assert fit(parameters, "openai")["parameters"] == {"type": "object", "properties": {}}


def test_a_tool_of_the_providers_own_is_sent_as_it_is() -> None:
    assert fitted([{"type": "web_search"}], PROFILES["openai"]) == [{"type": "web_search"}]


def test_a_change_of_the_tool_between_two_calls_is_seen() -> None:
    given = [tool(an_object(a=TEXT))]
    fitted(given, PROFILES["generic"])
    given[0]["function"]["name"] = "g"

    assert fitted(given, PROFILES["generic"])[0]["function"]["name"] == "g"


# --- strict ---


def test_strict_is_withdrawn_where_the_schema_cannot_honour_it() -> None:
    function = fit(SEND_NOTE, "openai", strict=True)

    assert function["strict"] is False
    assert function["parameters"] == {**SEND_NOTE, "required": ["to"]}


def test_strict_closes_every_object_where_it_is_kept() -> None:
    parameters = {
        **an_object(
            "to",
            "items",
            "who",
            to={"type": "string", "default": "me"},
            items={"type": "array", "items": an_object("n", n={"type": ["integer", "null"]})},
            who={"anyOf": [{"$ref": "#/$defs/Person"}, {"type": "null"}]},
        ),
        "$defs": {"Person": an_object("name", name=TEXT)},
    }

    function = fit(parameters, "openai", strict=True)

    sent = function["parameters"]
    assert function["strict"] is True
    assert sent["additionalProperties"] is False
    assert sent["properties"]["items"]["items"]["additionalProperties"] is False
    assert sent["$defs"]["Person"]["additionalProperties"] is False
    assert "default" not in sent["properties"]["to"]


@pytest.mark.parametrize(
    "parameters",
    [
        an_object(to=TEXT),  # optional
        an_object("meta", meta={"type": "object"}),  # of free form
        an_object("any", any={}),
        an_object("list", list={"type": "array"}),
        {**an_object("a", a=TEXT), "additionalProperties": True},
        {**an_object("a", a=TEXT), "additionalProperties": TEXT},
        an_object("a", a={"oneOf": [TEXT]}),
        an_object("a", a={"anyOf": [{"type": "object"}, TEXT]}),
        an_object("a", a={"type": "array", "items": {"type": "object"}}),
        {**an_object("a", a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "object"}}},
        {"type": "array", "items": TEXT},
    ],
)
def test_strict_is_never_claimed_for_a_schema_that_closing_would_change(parameters: Any) -> None:
    assert fit(parameters, "openai", strict=True)["strict"] is False


def test_a_function_that_does_not_claim_strict_is_not_closed() -> None:
    function = fit(an_object("a", a=TEXT), "openai")

    assert "strict" not in function
    assert "additionalProperties" not in function["parameters"]


# --- Gemini's subset ---


def test_gemini_gets_no_keyword_that_it_does_not_know() -> None:
    parameters = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **SEND_NOTE,
        "additionalProperties": False,
    }

    function = fit(parameters, "gemini", strict=True)

    assert function == {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {
                "to": TEXT,
                "cc": TEXT,
                "meta": {"type": "object"},
                "opts": {"type": "object", "properties": {"urgent": {"type": "boolean"}}},
            },
            "required": ["to"],
        },
    }


def gemini(schema: Any, **definitions: Any) -> Any:
    """How one property is sent to Gemini."""
    parameters = {**an_object(x=schema), "$defs": definitions}
    return fit(parameters, "gemini")["parameters"]["properties"]["x"]


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [TEXT, {"type": "integer"}]}),
        ({"anyOf": [TEXT, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"oneOf": [TEXT, {"type": "number"}]}, {"anyOf": [TEXT, {"type": "number"}]}),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, {"type": "string", "minLength": 1}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "uuid"}, TEXT),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number"}),
        ({"type": "array"}, {"type": "array", "items": TEXT}),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}]},
            {"type": "array", "items": {"type": "integer"}},
        ),
    ],
)
def test_gemini_gets_what_it_knows_in_place_of_what_it_does_not(schema: Any, sent: Any) -> None:
    assert gemini(schema) == sent


def test_references_are_inlined() -> None:
    assert gemini(
        {"$ref": "#/$defs/A", "description": "here"}, A={"$ref": "#/$defs/B"}, B=TEXT
    ) == {
        "type": "string",
        "description": "here",
    }


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    properties = {"default": TEXT, "$ref": TEXT, "title": TEXT}

    assert (
        fit(an_object("default", **properties), "gemini")["parameters"]["properties"] == properties
    )


def test_a_schema_that_refers_to_itself_is_cut() -> None:
    node = an_object(value=TEXT, next={"$ref": "#/$defs/Node"})

    sent = gemini({"$ref": "#/$defs/Node"}, Node=node)

    assert sent["properties"]["next"] == {"type": "object"}


def test_references_that_multiply_do_not_grow_without_end() -> None:
    definitions = {
        f"D{level}": an_object(
            a={"$ref": f"#/$defs/D{level + 1}"}, b={"$ref": f"#/$defs/D{level + 1}"}
        )
        for level in range(30)
    }

    assert len(str(gemini({"$ref": "#/$defs/D0"}, **definitions))) < 500_000


def test_a_function_without_parameters_has_none_for_gemini() -> None:
    assert fit(an_object(), "gemini") == {"name": "f"}
