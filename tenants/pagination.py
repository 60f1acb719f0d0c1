"""Lists by cursor: newest first, no counting, the same page shape everywhere."""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from rest_framework.request import Request

from tenants.errors import InvalidInput

M = TypeVar("M", bound=Model)
DEFAULT_LIMIT = 50
MAX_LIMIT = 200


def page_of(
    rows: QuerySet[M], request: Request, represent: Callable[[M], dict[str, Any]]
) -> dict[str, Any]:
    """One page of ``rows``, whose ids are UUIDv7 and so order them by time."""
    limit = _limit(request.query_params.get("limit"))
    after = request.query_params.get("after")
    if after is not None:
        rows = rows.filter(pk__lt=_cursor(after))
    found = list(rows.order_by("-pk")[: limit + 1])
    page, has_more = found[:limit], len(found) > limit
    return {
        "object": "list",
        "data": [represent(row) for row in page],
        "has_more": has_more,
        "next_after": str(page[-1].pk) if has_more else None,
    }


def whole_number(text: str, least: int, most: int) -> int | None:
    """The number that ``text`` is, within its range. Of a long text no number is made at all."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most))):
        return None
    number = int(text)
    return number if least <= number <= most else None


def _limit(text: str | None) -> int:
    limit = DEFAULT_LIMIT if text is None else whole_number(text, 1, MAX_LIMIT)
    if limit is None:
        raise InvalidInput(f"limit lies within 1 and {MAX_LIMIT}.", param="limit")
    return limit


def _cursor(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(
            "after is the next_after of the page before.", code="invalid_cursor", param="after"
        ) from None
