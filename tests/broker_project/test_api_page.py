"""docs/api.md names every route of the API, with what each of its methods needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from drf_spectacular.generators import SchemaGenerator
from rest_framework.views import APIView

from agents.urls import urlpatterns as of_agents
from broker_project.urls import urlpatterns as of_project
from journal.urls import urlpatterns as of_journal
from tenants.urls import urlpatterns as of_tenants

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text("utf-8")
ROW = re.compile(r"^\| `(/[^`]*)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)


def routes() -> Iterator[tuple[str, type[APIView]]]:
    """Each route below /api/v1, as the page spells it, with its view."""
    own = [each for each in of_project if str(each.pattern).startswith("api/v1/") and each.callback]
    for pattern in [*own, *of_tenants, *of_journal, *of_agents]:
        path = "/" + str(pattern.pattern).removeprefix("api/v1/")
        yield re.sub(r"<\w+:(\w+)>", r"{\1}", path), pattern.callback.view_class


def needed(view: type[APIView]) -> str:
    """What a view's methods need: ``GET `runs:read`, POST `admin```."""
    by_permission: dict[str, list[str]] = {}
    for method, permission in view.required_permissions.items():
        by_permission.setdefault(permission, []).append(method)
    return ", ".join(
        f"{' '.join(methods)} {f'`{permission}`' if permission else 'any'}"
        for permission, methods in by_permission.items()
    )


def test_every_route_stands_there_with_what_it_needs() -> None:
    assert dict(ROW.findall(PAGE)) == {path: needed(view) for path, view in routes()}


def test_so_does_every_route_of_the_description() -> None:
    described = SchemaGenerator().get_schema(request=None, public=True)["paths"]

    assert {path.removeprefix("/api/v1") for path in described} == set(dict(ROW.findall(PAGE)))
