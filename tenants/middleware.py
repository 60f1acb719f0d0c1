"""Every request starts outside of all scopes; who it is for, authentication finds out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from tenants.admin_reach import admin_reach
from tenants.context import abound, bound, current, enter, scope_active


class Walls:
    """Opens the block that a request runs in, and keeps it for a body that is streamed later."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        with scope_active(None):
            response = self._get_response(request)
            where = current()
            if where is not None and isinstance(response, StreamingHttpResponse):
                pieces: Any = response.streaming_content
                response.streaming_content = (
                    abound(where, pieces) if response.is_async else bound(where, pieces)
                )
        return response

    def process_view(self, request: HttpRequest, *_: Any) -> None:
        """The admin site's pages run where their user may look; the API authenticates itself.

        PostgreSQL knows no null character, and Django's filters and searches pass it on.
        """
        match = request.resolver_match
        if match is not None and match.app_name == "admin":
            if any("\0" in value for _, values in request.GET.lists() for value in values):
                raise BadRequest("A query holds no null characters.")
            where = admin_reach(request)
            if where is not None:
                enter(where)
