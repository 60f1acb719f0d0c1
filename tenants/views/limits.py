"""/api/v1/limits"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.access import deletable_limit, limited_scope, limited_token
from tenants.caller import Caller, caller_of
from tenants.idempotency import idempotent
from tenants.limits.rules import limits_of
from tenants.limits.standing import standings
from tenants.models import Limit
from tenants.permissions import ADMIN, ANY
from tenants.selectors import limits_of_tenant
from tenants.serializers import LimitInput, LimitOutput, validated
from tenants.services.limits import delete_limit, set_limit


class LimitList(APIView):
    """The limits that hold for the caller; an admin sees all of the tenant."""

    required_permissions: ClassVar = {"GET": ANY, "POST": ADMIN}

    @extend_schema(operation_id="limits_list", responses=LimitOutput(many=True))
    def get(self, request: Request) -> Response:
        """List limits, with what is left of each and when there is more."""
        found = list(standings(_visible(caller_of(request)), now=timezone.now()))
        return Response({"object": "list", "data": found, "has_more": False, "next_after": None})

    @extend_schema(request=LimitInput, responses={201: LimitOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Set a limit of the tenant, of a scope or of a token; one that is there changes."""
        caller = caller_of(request)
        values = validated(LimitInput, request)
        limit = set_limit(
            tenant=caller.tenant,
            kind=values["name"],
            value=values["limit"],
            scope=limited_scope(caller, values.get("scope")),
            token=limited_token(caller, values.get("token")),
        )
        return Response(next(standings([limit], now=timezone.now())), status=201)


class LimitDetail(APIView):
    """One limit."""

    required_permissions: ClassVar = {"DELETE": ADMIN}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, limit_id: UUID) -> Response:
        """Take a limit away."""
        delete_limit(limit=deletable_limit(caller_of(request), limit_id))
        return Response(status=204)


def _visible(caller: Caller) -> list[Limit]:
    if caller.may(ADMIN):
        return limits_of_tenant(caller.tenant)
    return limits_of(caller.own_reach)
