"""/api/v1/mcp_servers"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import McpServer
from agents.selectors import mcp_server_of, mcp_servers_of
from agents.serializers.mcp_servers import McpServerChange, McpServerInput, McpServerOutput
from agents.services.mcp_servers import (
    create_mcp_server,
    delete_mcp_server,
    refresh_tools,
    update_mcp_server,
)
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.permissions import ADMIN
from tenants.serializers import validated


class McpServerList(APIView):
    """MCP servers of the tenant, for its admins; what runs can use is at /tools."""

    required_permissions: ClassVar = {"GET": ADMIN, "POST": ADMIN}

    @extend_schema(operation_id="mcp_servers_list", responses=McpServerOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of MCP servers, newest first."""
        return Response(page_of(mcp_servers_of(caller_of(request).tenant), request, _represent))

    @extend_schema(request=McpServerInput, responses={201: McpServerOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Name an MCP server; it is asked for its tools at once."""
        values = validated(McpServerInput, request)
        token = values.pop("auth_token", None)
        tenant = caller_of(request).tenant
        server = create_mcp_server(tenant=tenant, values=values, token=token)
        return Response(_represent(server), status=201)


class McpServerDetail(APIView):
    """One MCP server."""

    required_permissions: ClassVar = {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(responses=McpServerOutput)
    def get(self, request: Request, server_id: UUID) -> Response:
        """Show an MCP server and what it listed last."""
        return Response(_represent(mcp_server_of(caller_of(request).tenant, server_id)))

    @extend_schema(request=McpServerChange, responses=McpServerOutput)
    def patch(self, request: Request, server_id: UUID) -> Response:
        """Change an MCP server; it is asked for its tools again."""
        server = mcp_server_of(caller_of(request).tenant, server_id)
        values = validated(McpServerChange, request)
        token = values.pop("auth_token", None)
        return Response(_represent(update_mcp_server(server=server, values=values, token=token)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, server_id: UUID) -> Response:
        """Forget an MCP server."""
        delete_mcp_server(server=mcp_server_of(caller_of(request).tenant, server_id))
        return Response(status=204)


class McpServerRefresh(APIView):
    """The list of a server's tools."""

    required_permissions: ClassVar = {"POST": ADMIN}

    @extend_schema(request=None, responses=McpServerOutput)
    def post(self, request: Request, server_id: UUID) -> Response:
        """Ask the server for its tools now."""
        server = mcp_server_of(caller_of(request).tenant, server_id)
        return Response(_represent(refresh_tools(server=server)))


def _represent(server: McpServer) -> dict[str, Any]:
    return dict(McpServerOutput(server).data)
