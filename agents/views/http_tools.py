"""/api/v1/http_tools"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import HttpTool
from agents.selectors import http_tool_of, http_tools_of
from agents.serializers.http_tools import (
    HttpToolChange,
    HttpToolInput,
    HttpToolOutput,
    NewHttpTool,
)
from agents.services.http_tools import (
    NewSecret,
    create_http_tool,
    delete_http_tool,
    replace_secret,
    update_http_tool,
)
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.permissions import ADMIN
from tenants.serializers import validated


class HttpToolList(APIView):
    """HTTP tools of the tenant, for its admins; what runs can use is at /tools."""

    required_permissions: ClassVar = {"GET": ADMIN, "POST": ADMIN}

    @extend_schema(operation_id="http_tools_list", responses=HttpToolOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of HTTP tools, newest first."""
        return Response(page_of(http_tools_of(caller_of(request).tenant), request, _represent))

    @extend_schema(request=HttpToolInput, responses={201: NewHttpTool})
    @idempotent
    def post(self, request: Request) -> Response:
        """Define an HTTP tool. Its secret is shown in this answer and never again."""
        new = create_http_tool(
            tenant=caller_of(request).tenant, values=validated(HttpToolInput, request)
        )
        return Response(_with_secret(new), status=201)


class HttpToolDetail(APIView):
    """One HTTP tool."""

    required_permissions: ClassVar = {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(responses=HttpToolOutput)
    def get(self, request: Request, tool_id: UUID) -> Response:
        """Show an HTTP tool."""
        return Response(_represent(http_tool_of(caller_of(request).tenant, tool_id)))

    @extend_schema(request=HttpToolChange, responses=HttpToolOutput)
    def patch(self, request: Request, tool_id: UUID) -> Response:
        """Change an HTTP tool."""
        tool = http_tool_of(caller_of(request).tenant, tool_id)
        values = validated(HttpToolChange, request)
        return Response(_represent(update_http_tool(tool=tool, values=values)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, tool_id: UUID) -> Response:
        """Delete an HTTP tool."""
        delete_http_tool(tool=http_tool_of(caller_of(request).tenant, tool_id))
        return Response(status=204)


class HttpToolSecret(APIView):
    """The secret that signs a tool's requests."""

    required_permissions: ClassVar = {"POST": ADMIN}

    @extend_schema(request=None, responses=NewHttpTool)
    def post(self, request: Request, tool_id: UUID) -> Response:
        """Replace the secret. The new one is shown in this answer and never again."""
        tool = http_tool_of(caller_of(request).tenant, tool_id)
        return Response(_with_secret(replace_secret(tool=tool)))


def _represent(tool: HttpTool) -> dict[str, Any]:
    return dict(HttpToolOutput(tool).data)


def _with_secret(new: NewSecret) -> dict[str, Any]:
    return {**_represent(new.tool), "secret": new.secret.reveal()}
