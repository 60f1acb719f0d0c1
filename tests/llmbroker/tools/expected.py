"""What the twenty signatures of benchmarks/signatures.py look like to a model."""

from __future__ import annotations

from typing import Any

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NULL = {"type": "null"}
UNIT = {
    "type": "string",
    "description": "A unit of temperature.",
    "enum": ["celsius", "fahrenheit"],
}
POINT = {
    "type": "object",
    "description": "A place on the map.",
    "properties": {
        "lat": {**NUMBER, "description": "Degrees north."},
        "lon": {**NUMBER, "description": "Degrees east.", "default": 0.0},
    },
    "required": ["lat"],
}
DOCUMENTED = {
    "city": {**STRING, "description": "The city's name, in its own language."},
    "days": {**INTEGER, "description": "How many days.", "default": 3},
}


def listed(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def any_of(*members: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"anyOf": list(members), **more}


EXPECTED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "plain": ({"city": STRING}, ["city"]),
    "defaults": (
        {
            "city": STRING,
            "days": {**INTEGER, "default": 3},
            "celsius": {"type": "boolean", "default": True},
            "factor": {**NUMBER, "default": 1.5},
        },
        ["city"],
    ),
    "google": (DOCUMENTED, ["city"]),
    "numpy": (DOCUMENTED, ["city"]),
    "rest": (DOCUMENTED, ["city"]),
    "literal": (
        {
            "rating": {**STRING, "enum": ["good", "bad"]},
            "level": any_of({**INTEGER, "enum": [1, 2]}, {**STRING, "enum": ["max"]}, default=1),
        },
        ["rating"],
    ),
    "enumerated": (
        {"unit": {**UNIT, "default": "celsius"}, "units": any_of(listed(UNIT), NULL)},
        [],
    ),
    "optional": ({"city": any_of(STRING, NULL), "limit": any_of(INTEGER, NULL)}, ["city"]),
    "union": (
        {
            "key": any_of(INTEGER, STRING),
            "value": any_of(
                listed(INTEGER), {"type": "object", "additionalProperties": INTEGER}, NULL
            ),
        },
        ["key"],
    ),
    "annotated": (
        {
            "city": {**STRING, "description": "The city's name."},
            "tags": listed({**STRING, "description": "In small letters."}, description="Labels."),
        },
        ["city", "tags"],
    ),
    "constrained": (
        {
            "count": {**INTEGER, "description": "How many.", "minimum": 1, "maximum": 10},
            "code": {**STRING, "pattern": "^[A-Z]{3}$", "maxLength": 3, "default": "UZB"},
        },
        ["count"],
    ),
    "containers": (
        {
            "names": listed(STRING),
            "counts": {"type": "object", "additionalProperties": INTEGER},
            "corner": {
                "type": "array",
                "prefixItems": [NUMBER, NUMBER],
                "minItems": 2,
                "maxItems": 2,
            },
            "unique": listed(STRING, uniqueItems=True),
            "anything": {},
        },
        ["names", "counts", "corner", "unique"],
    ),
    "structured": ({"place": POINT}, ["place"]),
    "typed": (
        {
            "window": {
                "type": "object",
                "description": "A span of hours.",
                "properties": {
                    "start": INTEGER,
                    "end": {**INTEGER, "description": "The hour after the last one."},
                },
                "required": ["start"],
            }
        },
        ["window"],
    ),
    "modelled": (
        {
            "address": {
                "type": "object",
                "description": "Where somebody lives.",
                "properties": {
                    "street": {**STRING, "description": "With the number."},
                    "city": STRING,
                    "postcode": any_of(STRING, NULL),
                },
                "required": ["street", "city"],
            },
            "note": {**STRING, "default": ""},
        },
        ["address"],
    ),
    "repeated": ({"start": POINT, "stops": listed(POINT)}, ["start", "stops"]),
    "recursive": ({"tree": {"$ref": "#/$defs/Node"}}, ["tree"]),
    "temporal": (
        {
            "day": {**STRING, "format": "date"},
            "at": {**STRING, "format": "date-time"},
            "within": {**STRING, "format": "duration"},
            "ticket": {**STRING, "format": "uuid"},
            "price": {**NUMBER, "default": 9.5},
        },
        ["day", "at", "within", "ticket"],
    ),
    "unannotated": ({"topic": {}, "rating": {**STRING, "default": "good"}}, ["topic"]),
    "variadic": ({"title": STRING, "tags": listed(STRING)}, ["title"]),
}
MORE = {
    "recursive": {
        "$defs": {
            "Node": {
                "type": "object",
                "description": "One branch of a tree.",
                "properties": {
                    "name": STRING,
                    "children": listed({"$ref": "#/$defs/Node"}, default=[]),
                },
                "required": ["name"],
            }
        }
    },
    "variadic": {"additionalProperties": INTEGER},
}
