"""/api/v1/scopes"""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.access import changeable_scope
from tenants.caller import caller_of
from tenants.pagination import page_of
from tenants.permissions import ADMIN, ANY
from tenants.selectors import scopes_of
from tenants.serializers import ScopeChange, ScopeOutput, validated
from tenants.services.people import set_key_policy


class ScopeList(APIView):
    """Scopes that the caller may know of."""

    required_permissions: ClassVar = {"GET": ANY}

    @extend_schema(operation_id="scopes_list", responses=ScopeOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the caller's scope and the shared one; for an admin, all of the tenant."""
        scopes = scopes_of(caller_of(request))
        return Response(page_of(scopes, request, lambda scope: dict(ScopeOutput(scope).data)))


class ScopeDetail(APIView):
    """One scope."""

    required_permissions: ClassVar = {"PATCH": ADMIN}

    @extend_schema(request=ScopeChange, responses=ScopeOutput)
    def patch(self, request: Request, scope_id: UUID) -> Response:
        """Say whose keys the scope may pay with; it holds from the next call on."""
        scope = changeable_scope(caller_of(request), scope_id)
        values = validated(ScopeChange, request)
        if values:
            scope = set_key_policy(scope=scope, policy=values["key_policy"])
        return Response(ScopeOutput(scope).data)
