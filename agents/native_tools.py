"""The tools that ship with the product: the date, the weather and a calculator."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.conf import settings

from agents.calculator import ALLOWED, evaluate
from agents.weather import current_weather
from llmbroker import function


@function(
    effect="pure",
    description="Today's date, weekday and time in a time zone.",
    parameters={
        "type": "object",
        "properties": {
            "timezone": {
                "type": "string",
                "description": "IANA time zone, such as Asia/Tashkent or Europe/Moscow."
                " UTC if left out.",
            }
        },
        "additionalProperties": False,
    },
)
def today(timezone: str = "UTC") -> str:
    """The date and time now in ``timezone``."""
    return date_line(datetime.now(UTC), timezone)


def date_line(now: datetime, timezone: str) -> str:
    """``now`` as a person in ``timezone`` reads it, with the weekday.

    >>> date_line(datetime(2026, 11, 30, 20, 5, tzinfo=UTC), "Asia/Tashkent")
    'Tuesday, 1 December 2026 (2026-12-01), 01:05 in Asia/Tashkent'
    """
    local = now.astimezone(_zone(timezone))
    return f"{local:%A}, {local.day} {local:%B %Y (%Y-%m-%d), %H:%M} in {timezone}"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"unknown time zone {name!r}: use an IANA name such as Asia/Tashkent or UTC"
        ) from error


@function(
    effect="pure",
    description="The weather now in a city: temperature in degrees Celsius, sky, humidity and"
    " wind.",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city, such as Tashkent."}
        },
        "required": ["city"],
        "additionalProperties": False,
    },
)
def weather(city: str) -> str:
    """The weather now in ``city``."""
    return current_weather(city, base_url=settings.WEATHER_API_URL)


@function(
    effect="pure",
    timeout=5.0,
    description=f"The value of an arithmetic expression of {ALLOWED}.",
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "Such as 30 * 1.8 + 32"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
)
def calculate(expression: str) -> str:
    """The value of an arithmetic expression."""
    return evaluate(expression)


PLUGIN = "native"
TOOLS = (today, weather, calculate)
