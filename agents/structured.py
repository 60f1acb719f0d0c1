"""Final answers as JSON that fits a schema.

The schema goes to the model, where it understands that; what comes back is checked here all the
same. Nothing is fetched for a ``$ref``, and patterns are left to the model: a tenant's regular
expression could keep a worker busy for ever. So could references that double with each level, or
many alternatives for many items: a check has a number of steps, and ends with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
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


MAX_STEPS = 100_000
"""Keywords looked at in one check: about half a second of a loop that others share."""

Check = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

_steps_left: ContextVar[list[int]] = ContextVar("steps_left")


class EndlessError(Exception):
    """The check would take too long."""


def _not_checked(*_: Any) -> Iterator[ValidationError]:
    return iter(())


def _unique(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    """``uniqueItems``, by the items' text: compared in pairs, some thousands take seconds."""
    if wanted and isinstance(instance, list) and len(set(map(_text, instance))) < len(instance):
        yield ValidationError("the items are not all different")


def _text(item: Any) -> bytes:
    try:
        return orjson.dumps(_comparable(item), option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested deeper than it writes
        raise EndlessError from None


def _comparable(value: Any) -> Any:
    """The same with 1.0 as 1, which JSON Schema takes for equal."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, dict):
        return {name: _comparable(item) for name, item in value.items()}
    return value


def _counted(check: Check) -> Check:
    def counted(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        left = _steps_left.get()
        left[0] -= len(value) if isinstance(value, list) else 1
        if left[0] < 0:
            raise EndlessError
        return check(validator, value, instance, schema)

    return counted


_CHECKS: dict[str, Check] = {
    **Draft202012Validator.VALIDATORS,
    "pattern": _not_checked,
    "uniqueItems": _unique,
}
_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _counted(check) for name, check in _CHECKS.items()},
)


def _fault(validator: Any, instance: Any) -> ValidationError | None:
    """What is wrong with ``instance``. Raises EndlessError, and what references raise."""
    token = _steps_left.set([MAX_STEPS])
    try:
        fault: ValidationError | None = best_match(validator.iter_errors(instance))
    finally:
        _steps_left.reset(token)
    return fault


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why answers cannot be checked against ``schema``; None if they can."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"This is no valid JSON Schema: {error.message[:200]}"
    if _mentions(schema, "patternProperties"):
        return "patternProperties is not supported."
    try:
        _fault(_Validator(schema, registry=Registry()), {})
    except (Unresolvable, RecursionError):
        return "A $ref leads nowhere, or out of the schema."
    except EndlessError:
        return "This schema takes too long to check answers with: its references multiply."
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
            fault = _fault(validator, answer_of(text))
        except ValueError:
            return _told("it is no JSON")
        except (Unresolvable, RecursionError):
            return _told("it cannot be checked")
        except EndlessError:
            return _told("it is too large to be checked")
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
