"""/api/v1/endpoints"""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.access import SHARED, visible_endpoint, writable_endpoint, writable_scope
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.models import Endpoint
from tenants.pagination import page_of
from tenants.permissions import ANY, KEYS_WRITE
from tenants.selectors import endpoints_for
from tenants.serializers import EndpointInput, EndpointOutput, NewEndpointInput, validated
from tenants.services.endpoints import add_endpoint, delete_endpoint, update_endpoint


def represent(endpoint: Endpoint) -> dict[str, Any]:
    """An endpoint as the API shows it."""
    return dict(EndpointOutput(endpoint).data)


class EndpointList(APIView):
    """Endpoints that the caller's scope can call beside the common pool."""

    required_permissions: ClassVar = {"GET": ANY, "POST": KEYS_WRITE}

    @extend_schema(operation_id="endpoints_list", responses=EndpointOutput(many=True))
    def get(self, request: Request) -> Response:
        """List endpoints."""
        return Response(page_of(endpoints_for(caller_of(request).scope), request, represent))

    @extend_schema(request=NewEndpointInput, responses={201: EndpointOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Add an endpoint for the caller's scope, or (admins) for the whole tenant."""
        caller = caller_of(request)
        values = validated(NewEndpointInput, request)
        name = values.pop("scope", None)
        scope = writable_scope(caller, name)
        endpoint = add_endpoint(
            tenant=caller.tenant, scope=None if name == SHARED else scope, values=values
        )
        return Response(represent(endpoint), status=201)


class EndpointDetail(APIView):
    """One endpoint."""

    required_permissions: ClassVar = {"GET": ANY, "PATCH": KEYS_WRITE, "DELETE": KEYS_WRITE}

    @extend_schema(responses=EndpointOutput)
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        """Show an endpoint."""
        return Response(represent(visible_endpoint(caller_of(request), endpoint_id)))

    @extend_schema(request=EndpointInput, responses=EndpointOutput)
    def patch(self, request: Request, endpoint_id: UUID) -> Response:
        """Change an endpoint."""
        endpoint = writable_endpoint(caller_of(request), endpoint_id)
        return Response(
            represent(update_endpoint(endpoint=endpoint, values=validated(EndpointInput, request)))
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, endpoint_id: UUID) -> Response:
        """Delete an endpoint."""
        delete_endpoint(endpoint=writable_endpoint(caller_of(request), endpoint_id))
        return Response(status=204)
