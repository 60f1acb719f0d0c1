"""Values fitted to a JSON Schema: types converted where that is safe, the common rules checked."""

from __future__ import annotations

from typing import Any

import orjson

from llmbroker.text import clip, storable
from llmbroker.tools.outcomes import ArgumentProblem
from llmbroker.tools.schema_form import json_type

CHECKED = frozenset({"type", "enum", "properties", "required", "items"})
"""The keywords that ``fitted`` checks; almost all schemas of tools have no others."""

_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "deprecated", "$schema"})
_UNDERSTOOD = CHECKED | _ANNOTATIONS
_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_ALONE = {each: frozenset({each}) for each in _TYPES}
_ANY: frozenset[str] = frozenset()
_LONGEST_VALUE = 60


def says_more(schema: Any) -> bool:
    """Whether ``schema`` has rules that ``fitted`` does not check."""
    if not isinstance(schema, dict):
        return False
    if not schema.keys() <= _UNDERSTOOD or says_more(schema.get("items")):
        return True
    properties = schema.get("properties")
    return isinstance(properties, dict) and any(map(says_more, properties.values()))


def fitted(value: Any, schema: Any, problems: list[ArgumentProblem], path: str = "") -> Any:
    """``value`` with text read as the object, list, number or boolean that ``schema`` wants.

    Null for a property that may be left out is left out. What breaks a rule is added to
    ``problems``.

    >>> fitted({"n": "5", "cc": None, "tags": '["a"]'}, {"properties": {
    ...     "n": {"type": "integer"}, "cc": {"type": "string"}, "tags": {"type": "array"}}}, [])
    {'n': 5, 'tags': ['a']}
    """
    if not isinstance(schema, dict):
        return value
    types = _types(schema)
    if types and not _is_one_of(value, types):
        value = _converted(value, types)
        if not _is_one_of(value, types):
            reason = f"should be of type {' or '.join(sorted(types))}, not {_shown(value)}"
            problems.append(ArgumentProblem(path or "(all)", reason))
            return value
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        reason = f"should be one of {', '.join(map(_shown, choices))}, not {_shown(value)}"
        problems.append(ArgumentProblem(path or "(all)", reason))
    if isinstance(value, dict):
        return _fitted_object(value, schema, problems, path)
    if isinstance(value, list):
        items = schema.get("items")
        return [
            fitted(each, items, problems, f"{path}[{index}]") for index, each in enumerate(value)
        ]
    return value


def _fitted_object(
    value: dict[str, Any], schema: dict[str, Any], problems: list[ArgumentProblem], path: str
) -> dict[str, Any]:
    properties, required = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    required = required if isinstance(required, list) else []
    inside = f"{path}." if path else ""
    problems += [
        ArgumentProblem(f"{inside}{name}", "is missing")
        for name in required
        # A name that no property describes is one that models are not told of.
        if name not in value and (name in properties or not properties)
    ]
    return {
        name: fitted(each, properties.get(name), problems, f"{inside}{name}")
        for name, each in value.items()
        if each is not None or name in required or _allows_null(properties.get(name))
    }


def _allows_null(schema: Any) -> bool:
    types = _types(schema) if isinstance(schema, dict) else None
    return not types or "null" in types


def _converted(value: Any, types: frozenset[str]) -> Any:
    """``value``, which is none of ``types``, as one of them where that is safe."""
    kind = json_type(value)
    if kind == "number" and "integer" in types and float(value).is_integer():
        return int(value)
    if kind in ("integer", "number") and "string" in types:
        return str(value)
    return _read(value, types) if kind == "string" else value


def _read(text: str, types: frozenset[str]) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(value, str):
        return text
    read = value if _is_one_of(value, types) else _converted(value, types)
    return read if _is_one_of(read, types) else text


def _is_one_of(value: Any, types: frozenset[str]) -> bool:
    kind = json_type(value)
    return kind in types or (kind == "integer" and "number" in types)


def _types(schema: dict[str, Any]) -> frozenset[str]:
    """The types that ``schema`` allows; empty where it does not say."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return _ALONE.get(declared, _ANY)
    if isinstance(declared, list):
        return _TYPES & {each for each in declared if isinstance(each, str)}
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        kinds = [_types(each) if isinstance(each, dict) else _ANY for each in branches]
        return _ANY.union(*kinds) if all(kinds) else _ANY
    return _ANY


def _shown(value: Any) -> str:
    try:
        text = orjson.dumps(value, default=str).decode()
    except (TypeError, ValueError):
        text = type(value).__name__
    return clip(storable(text), _LONGEST_VALUE)
