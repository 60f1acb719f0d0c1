"""/api/v1/tools"""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.serializers.tools import ToolOutput
from agents.tool_sources.catalog import tools_of
from tenants.caller import caller_of
from tenants.permissions import RUNS_READ


class ToolList(APIView):
    """Tools that runs and agents can name."""

    required_permissions: ClassVar = {"GET": RUNS_READ}

    @extend_schema(operation_id="tools_list", responses=ToolOutput(many=True))
    def get(self, request: Request) -> Response:
        """All tools, with the schemas that models read."""
        tools = [ToolOutput(tool).data for tool in tools_of(caller_of(request).tenant).values()]
        return Response({"object": "list", "data": tools, "has_more": False, "next_after": None})
