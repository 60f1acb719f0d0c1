"""Final answers as JSON that fits a schema.

The schema goes to the model, where it understands that; what comes back is checked here all the
same. Nothing is fetched for a ``$ref``, and patterns are left to the model: a tenant's regular
expression could keep a worker busy for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from llmbroker.tools.loop import Review
from llmbroker.wire.lenient_json import holds_huge_integer

MISFIT = "The answer does not fit the output schema, also after the model was told so."
MAX_FAULT = 500

_FENCED = re.compile(r"\A```[a-z]*\n(.*)\n```\Z", re.DOTALL)


def _not_checked(*_: Any) -> Iterator[ValidationError]:
    return iter(())


_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _not_checked}, version="answers"
)


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why answers cannot be checked against ``schema``; None if they can."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"This is no valid JSON Schema: {error.message[:200]}"
    if _mentions(schema, "patternProperties"):
        return "patternProperties is not supported."
    try:
        list(_Validator(schema, registry=Registry()).iter_errors({}))
    except (Unresolvable, RecursionError):
        return "A $ref leads nowhere, or out of the schema."
    return None


def answer_of(text: str) -> Any:
    """The JSON in an answer, also within a fence of Markdown. Raises ValueError."""
    return orjson.loads(_without_fence(text))


def review_of(schema: Mapping[str, Any] | None) -> Review | None:
    """What a tool loop asks of a final answer."""
    if schema is None:
        return None
    validator = _Validator(schema, registry=Registry())

    def review(text: str) -> str | None:
        try:
            fault = best_match(validator.iter_errors(answer_of(text)))
        except ValueError:
            return _told("it is no JSON")
        except (Unresolvable, RecursionError):
            return _told("it cannot be checked")
        if holds_huge_integer(_without_fence(text)):
            return _told("it holds an integer of more than 64 bits")
        if fault is None:
            return None
        return _told(f"{fault.json_path}: {fault.message[:MAX_FAULT]}")

    return review


def response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The schema as OpenAI's parameter."""
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}


def _without_fence(text: str) -> str:
    text = text.strip()
    fenced = _FENCED.match(text)
    return fenced[1] if fenced else text


def _told(fault: str) -> str:
    return (
        f"Your answer does not fit the schema that was asked for ({fault}). Answer once more,"
        " with the JSON alone."
    )


def _mentions(value: Any, keyword: str) -> bool:
    if isinstance(value, Mapping):
        return keyword in value or any(_mentions(each, keyword) for each in value.values())
    return isinstance(value, list) and any(_mentions(each, keyword) for each in value)
