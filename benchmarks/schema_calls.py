"""What each signature's schema must allow, must refuse and must say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Call = dict[str, Any]


@dataclass(frozen=True)
class Demand:
    """Calls that the function can take, calls that it cannot, and words for the model.

    ``silent`` are words that belong to single parameters and not to the function.
    """

    right: tuple[Call, ...]
    wrong: tuple[Call, ...] = ()
    words: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


_DOCUMENTED = Demand(
    right=({"city": "Oslo"}, {"city": "Oslo", "days": 5}),
    wrong=({}, {"city": 5}, {"city": "Oslo", "days": "five"}),
    words=("The city's name,", "How many days."),
    silent=("How many days.",),
)
_PLACE_WORDS = ("Degrees north.", "Degrees east.")
_TICKET = {
    "day": "2026-01-05",
    "at": "2026-01-05T10:00:00Z",
    "within": "PT1H",
    "ticket": "6f1b0c0e-9d0a-4a53-8d3e-0f6f3c8c3b1a",
}
_MANY = {"names": ["a"], "counts": {"a": 1}, "corner": [1.5, 2], "unique": ["a"]}

DEMANDS: dict[str, Demand] = {
    "plain": Demand(({"city": "Oslo"},), ({}, {"city": 5})),
    "defaults": Demand(
        ({"city": "Oslo"}, {"city": "Oslo", "days": 1, "celsius": False, "factor": 2}),
        ({}, {"city": "Oslo", "days": "one"}, {"city": "Oslo", "celsius": "no"}),
    ),
    "google": _DOCUMENTED,
    "numpy": _DOCUMENTED,
    "rest": _DOCUMENTED,
    "literal": Demand(
        ({"rating": "good"}, {"rating": "bad", "level": 2}, {"rating": "bad", "level": "max"}),
        ({"rating": "ugly"}, {"rating": "good", "level": 3}),
    ),
    "enumerated": Demand(
        ({}, {"unit": "fahrenheit", "units": ["celsius"]}, {"units": None}),
        ({"unit": "kelvin"}, {"units": ["kelvin"]}),
    ),
    "optional": Demand(
        ({"city": None}, {"city": "Oslo"}, {"city": "Oslo", "limit": 3}),
        ({}, {"city": 5}, {"city": "Oslo", "limit": "few"}),
    ),
    "union": Demand(
        ({"key": 1}, {"key": "a", "value": [1]}, {"key": 1, "value": {"a": 1}}),
        ({"key": []}, {"key": 1, "value": "text"}, {"key": 1, "value": ["text"]}),
    ),
    "annotated": Demand(
        ({"city": "Oslo", "tags": ["a"]},),
        ({"city": "Oslo"}, {"city": "Oslo", "tags": "a"}, {"city": "Oslo", "tags": [1]}),
        ("The city's name.", "Labels.", "In small letters."),
    ),
    "constrained": Demand(
        ({"count": 3}, {"count": 10, "code": "ABC"}),
        ({"count": 11}, {"count": 1, "code": "abc"}),
        ("How many.",),
    ),
    "containers": Demand(
        (_MANY, {**_MANY, "anything": 5}, {**_MANY, "anything": ["a"]}),
        (
            {**_MANY, "names": "a"},
            {**_MANY, "names": [1]},
            {**_MANY, "counts": {"a": "one"}},
            {**_MANY, "corner": [1, 2, 3]},
            {**_MANY, "corner": ["a", "b"]},
        ),
    ),
    "structured": Demand(
        ({"place": {"lat": 1}}, {"place": {"lat": 1, "lon": 2}}),
        ({}, {"place": {"lon": 2}}, {"place": {"lat": "north"}}),
        _PLACE_WORDS,
    ),
    "typed": Demand(
        ({"window": {"start": 1}}, {"window": {"start": 1, "end": 2}}),
        ({}, {"window": {"end": 2}}, {"window": {"start": "noon"}}),
        ("The hour after the last one.",),
    ),
    "modelled": Demand(
        (
            {"address": {"street": "Main 1", "city": "Oslo"}},
            {"address": {"street": "Main 1", "city": "Oslo", "postcode": None}, "note": "fast"},
        ),
        ({"address": {"city": "Oslo"}}, {"address": "Oslo"}),
        ("With the number.",),
    ),
    "repeated": Demand(
        ({"start": {"lat": 1}, "stops": [{"lat": 2}, {"lat": 3, "lon": 4}]},),
        ({"start": {"lat": 1}}, {"start": {"lat": 1}, "stops": [{"lon": 1}]}),
        _PLACE_WORDS,
    ),
    "recursive": Demand(
        ({"tree": {"name": "a"}}, {"tree": {"name": "a", "children": [{"name": "b"}]}}),
        ({"tree": {}}, {"tree": {"name": "a", "children": [{"name": 5}]}}),
    ),
    "temporal": Demand(
        (_TICKET, {**_TICKET, "price": 12.5}),
        ({**_TICKET, "day": 5}, {**_TICKET, "ticket": []}, {**_TICKET, "price": "free"}),
        ("date", "date-time"),
    ),
    "unannotated": Demand(
        ({"topic": "films"}, {"topic": 5, "rating": "bad"}), ({}, {"rating": "bad"})
    ),
    "variadic": Demand(
        ({"title": "a"}, {"title": "a", "tags": ["b", "c"]}),
        ({}, {"title": "a", "tags": "b"}, {"title": "a", "tags": [1]}),
    ),
}
