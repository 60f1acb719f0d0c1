"""/api/v1/agents"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Agent
from agents.selectors import agent_of, agents_of
from agents.serializers.agents import AgentInput, AgentOutput
from agents.services.definitions import create_agent, delete_agent, update_agent
from agents.tool_sources.catalog import tools_of
from tenants.caller import caller_of
from tenants.pagination import page_of
from tenants.permissions import ADMIN, RUNS_READ
from tenants.serializers import validated


class AgentList(APIView):
    """Agents of the tenant: all its members may run them, its admins define them."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": ADMIN}

    @extend_schema(operation_id="agents_list", responses=AgentOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of agents, newest first."""
        return Response(page_of(agents_of(caller_of(request).tenant), request, _represent))

    @extend_schema(request=AgentInput, responses={201: AgentOutput})
    def post(self, request: Request) -> Response:
        """Define an agent."""
        tenant = caller_of(request).tenant
        agent = create_agent(
            tenant=tenant,
            available=tools_of(tenant),
            values=validated(AgentInput, request),
        )
        return Response(_represent(agent), status=201)


class AgentDetail(APIView):
    """One agent."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(responses=AgentOutput)
    def get(self, request: Request, agent_id: UUID) -> Response:
        """Show an agent."""
        return Response(_represent(agent_of(caller_of(request).tenant, agent_id)))

    @extend_schema(request=AgentInput, responses=AgentOutput)
    def patch(self, request: Request, agent_id: UUID) -> Response:
        """Change an agent. Runs that exist keep what they were created with."""
        tenant = caller_of(request).tenant
        agent = update_agent(
            agent=agent_of(tenant, agent_id),
            available=tools_of(tenant),
            values=validated(AgentInput, request),
        )
        return Response(_represent(agent))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, agent_id: UUID) -> Response:
        """Delete an agent; its runs stay."""
        delete_agent(agent=agent_of(caller_of(request).tenant, agent_id))
        return Response(status=204)


def _represent(agent: Agent) -> dict[str, Any]:
    return dict(AgentOutput(agent).data)
