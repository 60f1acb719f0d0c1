"""Schemas for OpenAI's strict mode: every object closed, every property required."""

from __future__ import annotations

from typing import Any

_DEEPEST = 64

# Strict mode refuses these. Left out, they would change what is valid, so strict goes instead.
_UNSUPPORTED = frozenset(
    {
        "allOf",
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_VALUES = frozenset({"type", "$ref", "anyOf", "enum", "const"})


def closed(schema: dict[str, Any]) -> dict[str, Any] | None:
    """``schema`` with every object closed, or None if that would change its meaning.

    An optional property cannot be expressed, and neither can an object of free form.
    """
    return _closed(schema, 0) if schema.get("type") == "object" else None


def _closed(schema: Any, depth: int) -> dict[str, Any] | None:
    if not isinstance(schema, dict) or depth > _DEEPEST or schema.keys() & _UNSUPPORTED:
        return None
    if not schema.keys() & _VALUES:
        return None
    copy = {key: value for key, value in schema.items() if key != "default"}
    types = schema.get("type")
    if types == "object" or (isinstance(types, list) and "object" in types):
        if not _is_closable(schema):
            return None
        copy["additionalProperties"] = False
        copy.setdefault("required", [])
    if types == "array" and "items" not in schema:
        return None
    return copy if _close_inside(copy, depth) else None


def _is_closable(schema: dict[str, Any]) -> bool:
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or schema.get("additionalProperties", False) is not False:
        return False
    return isinstance(required, list) and all(name in required for name in properties)


def _close_inside(copy: dict[str, Any], depth: int) -> bool:
    """Replace the schemas inside ``copy`` by closed ones; False if one cannot be closed."""
    for key in ("properties", "$defs", "definitions"):
        if isinstance(copy.get(key), dict):
            named = {name: _closed(inner, depth + 1) for name, inner in copy[key].items()}
            if None in named.values():
                return False
            copy[key] = named
    if "items" in copy:
        copy["items"] = _closed(copy["items"], depth + 1)
    if isinstance(copy.get("anyOf"), list):
        copy["anyOf"] = [_closed(option, depth + 1) for option in copy["anyOf"]]
    return copy.get("items", True) is not None and None not in copy.get("anyOf", ())
