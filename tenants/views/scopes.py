"""/api/v1/scopes"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.caller import caller_of
from tenants.pagination import page_of
from tenants.permissions import ANY
from tenants.selectors import scopes_of
from tenants.serializers import ScopeOutput


class ScopeList(APIView):
    """Scopes that the caller may know of."""

    required_permissions: ClassVar = {"GET": ANY}

    @extend_schema(operation_id="scopes_list", responses=ScopeOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the caller's scope and the shared one; for an admin, all of the tenant."""
        scopes = scopes_of(caller_of(request))
        return Response(page_of(scopes, request, lambda scope: dict(ScopeOutput(scope).data)))
