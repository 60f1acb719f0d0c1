"""The check on every view that its caller may do this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from tenants.caller import Caller
from tenants.roles import (
    ADMIN,
    ALL,
    CHAT_WRITE,
    JOURNAL_READ,
    KEYS_WRITE,
    OF_ROLE,
    RUNS_READ,
    RUNS_WRITE,
)

if TYPE_CHECKING:
    from rest_framework.views import APIView  # DRF's views import this module through settings

__all__ = [
    "ADMIN",
    "ALL",
    "ANY",
    "CHAT_WRITE",
    "JOURNAL_READ",
    "KEYS_WRITE",
    "OF_ROLE",
    "RUNS_READ",
    "RUNS_WRITE",
    "HasPermission",
]

ANY = ""
"""For ``required_permissions``: any caller will do."""


class HasPermission(BasePermission):
    """Every view says what each of its methods needs; one that does not say is refused.

    ``required_permissions = {"GET": RUNS_READ, "POST": RUNS_WRITE}``
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the caller holds what the view asks for this method."""
        if not isinstance(request.auth, Caller):
            return False
        method = "GET" if request.method == "HEAD" else str(request.method)
        if not hasattr(view, method.lower()):
            return True  # no handler runs: DRF answers 405
        needed = getattr(view, "required_permissions", {}).get(method)
        return needed == ANY or needed in request.auth.permissions
