"""Lists over very many rows: what they search, and how they reach a page far from the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Model, QuerySet


class LatePaginator(Paginator):  # type: ignore[type-arg]  # no generic at run time
    """Finds which rows are on the page by their ids alone, and only then reads and joins those."""

    def page(self, number: int | str) -> Any:
        """The page; its rows in the list's order."""
        page = super().page(number)
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        ids = list(page.object_list.values_list("pk", flat=True))  # type: ignore[attr-defined]
        page.object_list = rows.filter(pk__in=ids)
        return page


MATCHES = {"^": "istartswith", "=": "iexact"}
"""Django's signs before a name in ``search_fields``; without one, the word may be anywhere."""

FEW = 1000
"""Rows that are named by their ids when they match; more are left to the database to find."""


def matching(words: Sequence[str], rows: QuerySet[Model], fields: Sequence[str]) -> QuerySet[Model]:
    """The ``rows`` that have each of the words in one of ``fields``, as ``search_fields`` has them.

    Each field is asked on its own first: joined by OR, those of several tables can use no index.
    """
    for word in words:
        rows = rows.filter(_having(word, rows, fields))
    return rows


def _having(word: str, rows: QuerySet[Model], fields: Sequence[str]) -> Q:
    everything = rows.model._default_manager  # noqa: SLF001 - its public name in Django's docs
    named, having = set(), Q()
    for field in fields:
        asked = Q((_lookup(field), word))
        found = list(everything.filter(asked).values_list("pk", flat=True)[: FEW + 1])
        if len(found) <= FEW:
            named.update(found)
        else:
            having |= asked
    return having | Q(pk__in=named)


def _lookup(field: str) -> str:
    match = MATCHES.get(field[0])
    return f"{field[1:]}__{match}" if match else f"{field}__icontains"
