"""Twenty signatures that people declare as tools. Needs pydantic and nothing of ours.

Each library that makes schemas is given these very functions: benchmarks/schemas_compare.py
lays what they make side by side, and tests/llmbroker/tools/test_schemas.py says what ours must.
"""

# ruff: noqa: FBT001, FBT002, UP007, UP045 - people write them so, and each way must do

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional, Union
from uuid import UUID

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Unit(Enum):
    """A unit of temperature."""

    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


@dataclass
class Point:
    """A place on the map.

    Attributes:
        lat: Degrees north.
        lon: Degrees east.
    """

    lat: float
    lon: float = 0.0


class Window(TypedDict):
    """A span of hours."""

    start: int
    end: NotRequired[Annotated[int, "The hour after the last one."]]


class Address(BaseModel):
    """Where somebody lives."""

    street: str = Field(description="With the number.")
    city: str
    postcode: str | None = None


class Node(BaseModel):
    """One branch of a tree."""

    name: str
    children: list["Node"] = []


def plain(city: str) -> str:
    """Current weather in a city."""
    return city


def defaults(city: str, days: int = 3, celsius: bool = True, factor: float = 1.5) -> str:
    """Forecast for some days."""
    return f"{city}{days}{celsius}{factor}"


def google(city: str, days: int = 3) -> str:
    """Forecast for some days.

    The source is the national service.

    Args:
        city: The city's name,
            in its own language.
        days (int): How many days.

    Returns:
        The forecast in words.
    """
    return f"{city}{days}"


def numpy(city: str, days: int = 3) -> str:
    """Forecast for some days.

    The source is the national service.

    Parameters
    ----------
    city : str
        The city's name,
        in its own language.
    days : int, optional
        How many days.

    Returns
    -------
    str
        The forecast in words.
    """
    return f"{city}{days}"


def rest(city: str, days: int = 3) -> str:
    """Forecast for some days.

    The source is the national service.

    :param city: The city's name,
        in its own language.
    :param days: How many days.
    :returns: The forecast in words.
    """
    return f"{city}{days}"


def literal(rating: Literal["good", "bad"], level: Literal[1, 2, "max"] = 1) -> str:
    """Recommend something."""
    return f"{rating}{level}"


def enumerated(unit: Unit = Unit.CELSIUS, units: Optional[list[Unit]] = None) -> str:
    """Show temperatures."""
    return f"{unit}{units}"


def optional(city: str | None, limit: Optional[int] = None) -> str:
    """List the stations."""
    return f"{city}{limit}"


def union(key: int | str, value: Union[list[int], dict[str, int], None] = None) -> str:
    """Look something up."""
    return f"{key}{value}"


def annotated(
    city: Annotated[str, "The city's name."],
    tags: Annotated[list[Annotated[str, "In small letters."]], "Labels."],
) -> str:
    """Label a city."""
    return f"{city}{tags}"


def constrained(
    count: Annotated[int, Field(ge=1, le=10, description="How many.")],
    code: Annotated[str, Field(pattern="^[A-Z]{3}$", max_length=3)] = "UZB",
) -> str:
    """Draw lots."""
    return f"{count}{code}"


def containers(
    names: list[str],
    counts: dict[str, int],
    corner: tuple[float, float],
    unique: set[str],
    anything: Any = None,
) -> str:
    """Take many kinds."""
    return f"{names}{counts}{corner}{unique}{anything}"


def structured(place: Point) -> str:
    """Weather at a place."""
    return f"{place.lat}{place.lon}"


def typed(window: Window) -> str:
    """Free hours."""
    return f"{window['start']}"


def modelled(address: Address, note: str = "") -> str:
    """Send a parcel."""
    return f"{address.city}{note}"


def repeated(start: Point, stops: list[Point]) -> str:
    """Plan a route."""
    return f"{start}{stops}"


def recursive(tree: Node) -> str:
    """Count the leaves."""
    return tree.name


def temporal(
    day: date, at: datetime, within: timedelta, ticket: UUID, price: Decimal = Decimal("9.5")
) -> str:
    """Book a seat."""
    return f"{day}{at}{within}{ticket}{price}"


def unannotated(topic, rating="good"):  # type: ignore[no-untyped-def]
    """Recommend something about a topic."""
    return f"{topic}{rating}"


def variadic(title: str, *tags: str, **counts: int) -> str:
    """File something."""
    return f"{title}{tags}{counts}"


SIGNATURES: list[Callable[..., Any]] = [
    *(plain, defaults, google, numpy, rest, literal, enumerated, optional, union, annotated),
    *(constrained, containers, structured, typed, modelled, repeated, recursive, temporal),
    *(unannotated, variadic),
]
