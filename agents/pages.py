"""Pages of what a run numbers itself: oldest first, by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request

from tenants.errors import InvalidInput
from tenants.pagination import whole_number

M = TypeVar("M", bound=Model)
DEFAULT_LIMIT = 200
MAX_LIMIT = 1000
MAX_NUMBER = 2**31 - 1


def numbered_page(
    rows: QuerySet[M],
    request: Request,
    number: str,
    represent: Callable[[M], dict[str, Any]],
    after: int | None = None,
) -> dict[str, Any]:
    """One page of ``rows`` by their column ``number``; ``?after=`` is the last number seen."""
    limit = integer(request, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    if after is None:
        after = integer(request, "after", 0, 0, MAX_NUMBER)
    found = list(rows.filter(**{f"{number}__gt": after}).order_by(number)[: limit + 1])
    page, has_more = found[:limit], len(found) > limit
    return {
        "object": "list",
        "data": [represent(row) for row in page],
        "has_more": has_more,
        "next_after": getattr(page[-1], number) if has_more else None,
    }


def integer(request: Request, param: str, default: int, least: int, most: int) -> int:
    """A number in the query. Raises InvalidInput for one out of its range."""
    text = request.query_params.get(param)
    if text is None:
        return default
    number = whole_number(text, least, most)
    if number is None:
        raise InvalidInput(f"{param} lies within {least} and {most}.", param=param)
    return number
