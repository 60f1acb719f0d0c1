"""The form of a schema that providers can enforce while they generate (OpenAI's ``strict``)."""

from __future__ import annotations

from typing import Any

import orjson

from llmbroker.tools.schema_form import Schema

# Keywords that a provider refuses in a strict schema, without which it only allows more;
# what they forbid is still refused when the call arrives.
_DROPPED = ("default", "uniqueItems", "examples")

_REFUSED_FORMATS = frozenset({"binary", "path", "regex", "uri", "password"})


def strict_form(schema: Schema) -> Schema:
    """``schema`` with every object closed and every property required.

    What was optional accepts null, which then stands for its default. Raises ValueError where
    the schema allows what strict schemas cannot say: names that are not listed, or any value.
    """
    return _without_refused(_closed(schema, ""))


def _closed(node: Schema, path: str) -> Schema:
    problem = _problem(node)
    if problem is not None:
        raise ValueError(f"{path or 'the whole object'} {problem}, which a strict schema cannot")
    closed = dict(node)
    for keyword in ("properties", "$defs"):
        if keyword in node:
            closed[keyword] = {
                name: _closed(each, f"{path}.{name}".lstrip("."))
                for name, each in node[keyword].items()
            }
    if "items" in node:
        closed["items"] = _without_refused(_closed(node["items"], f"{path}[]"))
    if "anyOf" in node:
        closed["anyOf"] = [_without_refused(_closed(each, path)) for each in node["anyOf"]]
    return _with_all_required(closed) if node.get("type") == "object" else closed


def _problem(node: Schema) -> str | None:
    if "prefixItems" in node or "oneOf" in node or "allOf" in node or "not" in node:
        return "has members of several kinds by position or by rule"
    if node.get("type") == "array" and not isinstance(node.get("items"), dict):
        return "is a list of anything"
    if node.get("type") == "object" and (
        node.get("additionalProperties", False) is not False or "properties" not in node
    ):
        return "allows any name"
    if not node.keys() & {"type", "anyOf", "$ref", "enum"}:
        return "allows any value"
    return None


def _with_all_required(node: Schema) -> Schema:
    required = set(node.get("required", ()))
    node["properties"] = {
        name: _without_refused(each if name in required else _nullable(each))
        for name, each in node["properties"].items()
    }
    node["required"] = list(node["properties"])
    node["additionalProperties"] = False
    return node


def _nullable(node: Schema) -> Schema:
    """``node`` or null, with its default, which strict schemas have no word for, in words."""
    default: Any = node.get("default")
    if default is not None:
        words = f"Null means {orjson.dumps(default).decode()}."
        node = {**node, "description": f"{node.get('description', '')} {words}".strip()}
    described = {"description": node["description"]} if "description" in node else {}
    inner = {key: value for key, value in node.items() if key != "description"}
    if "anyOf" in inner:
        members = inner.pop("anyOf")
        null = [] if {"type": "null"} in members else [{"type": "null"}]
        return {**described, "anyOf": [*members, *null], **inner}
    return {**described, "anyOf": [_without_refused(inner), {"type": "null"}]}


def _without_refused(node: Schema) -> Schema:
    kept = {key: value for key, value in node.items() if key not in _DROPPED}
    if kept.get("format") in _REFUSED_FORMATS:
        del kept["format"]
    return kept
