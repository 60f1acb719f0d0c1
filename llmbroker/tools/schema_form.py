"""JSON Schemas as models read them best: no titles, small definitions in place, ``enum`` typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any

import orjson

Schema = dict[str, Any]

SMALL = 300
"""A definition of at most this many characters is put in place wherever it is used."""

_NAMED = ("properties", "$defs", "patternProperties")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "contains", "propertyNames")
_ORDER = ("type", "description", "enum", "properties", "required", "items", "anyOf")
JSON_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
_TYPE_NAMES: dict[type, str] = {
    **dict(JSON_TYPES),
    NoneType: "null",
    dict: "object",
    list: "array",
}
_PREFIX = "#/$defs/"


def readable(schema: Schema) -> Schema:
    """``schema``, as pydantic makes it, without noise and with small definitions in place."""
    return inlined(_tidied(schema))


def mapped(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy with ``change`` applied to every schema directly inside."""
    copy = dict(schema)
    for keyword in _NAMED:
        if isinstance(copy.get(keyword), dict):
            copy[keyword] = {name: _changed(each, change) for name, each in copy[keyword].items()}
    for keyword in _LISTED:
        if isinstance(copy.get(keyword), list):
            copy[keyword] = [_changed(each, change) for each in copy[keyword]]
    for keyword in _SINGLE:
        if isinstance(copy.get(keyword), dict):
            copy[keyword] = change(copy[keyword])
    return copy


def inlined(schema: Schema) -> Schema:
    """``schema`` with the definitions that are small or used once in place of their references.

    One that contains itself stays a definition.
    """
    definitions: dict[str, Schema] = schema.get("$defs", {})
    if not definitions:
        return schema
    uses = list(_references(schema))
    in_place = {
        name
        for name, each in definitions.items()
        if not _contains_itself(name, definitions)
        and (uses.count(name) == 1 or len(orjson.dumps(each)) <= SMALL)
    }

    def resolve(node: Schema) -> Schema:
        name = _target(node)
        if name in in_place:
            beside = {key: value for key, value in node.items() if key != "$ref"}
            node = {**definitions[name], **beside}
        return in_order(mapped(node, resolve))

    body = {key: value for key, value in schema.items() if key != "$defs"}
    kept = {name: resolve(each) for name, each in definitions.items() if name not in in_place}
    return {**resolve(body), **({"$defs": kept} if kept else {})}


def _tidied(node: Schema) -> Schema:
    node = mapped(node, _tidied)
    node.pop("title", None)
    if isinstance(node.get("additionalProperties"), bool):
        del node["additionalProperties"]
    if node.get("default", ...) is None:
        del node["default"]
    if "discriminator" in node:
        del node["discriminator"]
        node["anyOf"] = node.pop("oneOf", [])
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "enum" in node and "type" not in node:
        return typed_enum(node)
    return in_order(node)


def typed_enum(node: Schema) -> Schema:
    """Some providers refuse an ``enum`` without ``type``, so one of several types is divided."""
    by_type: dict[str, list[Any]] = {}
    for value in node.pop("enum"):
        by_type.setdefault(json_type(value), []).append(value)
    members: list[Schema] = [
        {"type": kind} if kind == "null" else {"type": kind, "enum": values}
        for kind, values in by_type.items()
    ]
    return in_order({**node, **(members[0] if len(members) == 1 else {"anyOf": members})})


def json_type(value: object) -> str:
    """JSON Schema's name for the type of a JSON value.

    >>> json_type(True), json_type(1), json_type(None), json_type([])
    ('boolean', 'integer', 'null', 'array')
    """
    exact = _TYPE_NAMES.get(type(value))
    if exact is not None:
        return exact
    for kind, name in JSON_TYPES:
        if isinstance(value, kind):
            return name
    return "object" if isinstance(value, Mapping) else "array"


def in_order(node: Schema) -> Schema:
    """``node`` with its keywords as people write them: the type first, then the description."""
    first = {key: node[key] for key in _ORDER if key in node}
    return {**first, **{key: value for key, value in node.items() if key not in first}}


def _changed(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    return change(schema) if isinstance(schema, dict) else schema


def _target(node: Schema) -> str | None:
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith(_PREFIX):
        return reference.removeprefix(_PREFIX)
    return None


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        target = _target(node)
        if target is not None:
            yield target
        for each in node.values():
            yield from _references(each)
    elif isinstance(node, list):
        for each in node:
            yield from _references(each)


def _contains_itself(name: str, definitions: dict[str, Schema]) -> bool:
    seen: set[str] = set()
    ahead = list(_references(definitions[name]))
    while ahead:
        each = ahead.pop()
        if each == name:
            return True
        if each not in seen:
            seen.add(each)
            ahead += _references(definitions.get(each, {}))
    return False
