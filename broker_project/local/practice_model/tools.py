"""Which declared tool fits a want, and the arguments that its schema asks for."""

import re
from collections.abc import Sequence
from copy import copy
from typing import Any

from broker_project.local.practice_model.cities import cities_in
from broker_project.local.practice_model.questions import Kind, Want

Schema = dict[str, Any]

# Stems looked for in a tool's name and description.
STEMS = {
    Kind.DATE: r"date|today|\bday|time|calendar|sana|bugun|kun\b|дат|сегодня|врем",
    Kind.WEATHER: r"weather|forecast|temperature|havo|погод|температур",
    Kind.ARITHMETIC: (
        r"calc|math|arithmetic|expression|evaluat|comput|hisob|ifoda|вычисл|калькул|выраж"
    ),
}
# And in the names and descriptions of its parameters.
SUBJECT_STEMS = {
    Kind.DATE: r"(?!)",
    Kind.WEATHER: r"city|location|place|town|shahar|joy|город|мест",
    Kind.ARITHMETIC: r"expr|formula|sum|ifoda|выраж|формул",
}
ZONE = re.compile(r"zone|\btz\b", re.IGNORECASE)
ZONES = {
    "Asia/Tashkent": ("Toshkent", "Tashkent", "Ташкент"),
    "Asia/Samarkand": ("Samarqand", "Samarkand", "Самарканд", "Buxoro", "Bukhara", "Бухара"),
    "Europe/Moscow": ("Moskva", "Moscow", "Москва"),
    "Europe/London": ("London", "Лондон"),
    "Europe/Paris": ("Parij", "Paris", "Париж"),
    "Europe/Berlin": ("Berlin", "Берлин"),
    "Asia/Tokyo": ("Tokio", "Tokyo", "Токио"),
    "America/New_York": ("Nyu-York", "New York", "Нью-Йорк"),
}
ZONE_OF = {city.casefold(): zone for zone, cities in ZONES.items() for city in cities}
NAME_WEIGHT = 3
EMPTY: Schema = {"integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}


def fitting(kind: Kind, tools: Sequence[Schema]) -> Schema | None:
    """The function that fits best by its name and description; None if none does."""
    functions = [tool["function"] for tool in tools if isinstance(tool.get("function"), dict)]
    best = max(functions, key=lambda function: _fit(kind, function), default=None)
    return best if best is not None and _fit(kind, best) else None


def arguments_for(want: Want, function: Schema, question: str) -> Schema:
    """Arguments by the function's schema: the want's subject, and what else is required."""
    parameters = function.get("parameters") or {}
    properties: dict[str, Schema] = parameters.get("properties") or {}
    required: list[str] = parameters.get("required") or []
    arguments: Schema = {}
    if want.subject and (name := _subject_property(want.kind, properties, required)):
        arguments[name] = want.subject
    zone = _zone(question)
    for name, schema in properties.items():
        if name in arguments:
            continue
        if ZONE.search(name) and (zone or name in required):
            arguments[name] = zone or "UTC"
        elif name in required:
            arguments[name] = _value(schema, question)
    return arguments


def _fit(kind: Kind, function: Schema) -> int:
    name, description = str(function.get("name")), str(function.get("description"))
    in_name = re.search(STEMS[kind], name, re.IGNORECASE) is not None
    return NAME_WEIGHT * in_name + len(set(re.findall(STEMS[kind], description.lower())))


def _subject_property(
    kind: Kind, properties: dict[str, Schema], required: Sequence[str]
) -> str | None:
    texts = [name for name, schema in properties.items() if _is_text(schema)]
    for name in texts:
        if re.search(
            SUBJECT_STEMS[kind], f"{name} {properties[name].get('description', '')}", re.IGNORECASE
        ):
            return name
    return next((name for name in (*required, *texts) if name in texts), None)


def _is_text(schema: Schema) -> bool:
    kind = schema.get("type", "string")
    return "enum" not in schema and (kind == "string" or "string" in kind)


def _zone(question: str) -> str | None:
    """The time zone of the first city of the question whose zone is known."""
    names = (city.name.casefold() for city in cities_in(question))
    return next((ZONE_OF[name] for name in names if name in ZONE_OF), None)


def _value(schema: Schema, question: str) -> object:
    """Something valid for a required parameter that the question says nothing about."""
    if "default" in schema:
        return schema["default"]
    if choices := schema.get("enum"):
        return next((one for one in choices if str(one).lower() in question.lower()), choices[0])
    return copy(EMPTY.get(str(schema.get("type")), ""))
