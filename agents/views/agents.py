"""/api/v1/agents"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Agent, AgentVersion
from agents.selectors import agent_of, agent_version_of, agents_of
from agents.serializers.agents import AgentInput, AgentOutput, AgentVersionOutput
from agents.services.definitions import (
    create_agent,
    delete_agent,
    restore_agent,
    update_agent,
)
from agents.tool_sources.catalog import tools_of
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.permissions import ADMIN, RUNS_READ
from tenants.serializers import validated


class AgentList(APIView):
    """Agents of the tenant: all its members may run them, its admins define them."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": ADMIN}

    @extend_schema(operation_id="agents_list", responses=AgentOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of agents, newest first."""
        agents = agents_of(caller_of(request).tenant)
        return Response(page_of(agents, request, lambda agent: dict(AgentOutput(agent).data)))

    @extend_schema(request=AgentInput, responses={201: AgentOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Define an agent."""
        tenant = caller_of(request).tenant
        agent = create_agent(
            tenant=tenant,
            available=tools_of(tenant),
            values=validated(AgentInput, request),
            by=caller_of(request).user,
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
            by=caller_of(request).user,
        )
        return Response(_represent(agent))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, agent_id: UUID) -> Response:
        """Delete an agent; its runs stay."""
        delete_agent(agent=agent_of(caller_of(request).tenant, agent_id))
        return Response(status=204)


class AgentVersions(APIView):
    """What an agent was, version by version."""

    required_permissions: ClassVar = {"GET": RUNS_READ}

    @extend_schema(operation_id="agent_versions_list", responses=AgentVersionOutput(many=True))
    def get(self, request: Request, agent_id: UUID) -> Response:
        """A page of versions, newest first."""
        versions = agent_of(caller_of(request).tenant, agent_id).versions.all()
        return Response(page_of(versions, request, _version))


class AgentVersionRestore(APIView):
    """The way back to what an agent was."""

    required_permissions: ClassVar = {"POST": ADMIN}

    @extend_schema(request=None, responses=AgentOutput)
    def post(self, request: Request, agent_id: UUID, number: int) -> Response:
        """Make the agent what it was in that version, as a new version."""
        caller = caller_of(request)
        version = agent_version_of(agent_of(caller.tenant, agent_id), number)
        agent = restore_agent(version=version, available=tools_of(caller.tenant), by=caller.user)
        return Response(_represent(agent))


def _represent(agent: Agent) -> dict[str, Any]:
    # Of an agent that was saved just now the newest version may be another than it was read with.
    return dict(AgentOutput(agent_of(agent.tenant, agent.pk)).data)


def _version(version: AgentVersion) -> dict[str, Any]:
    return dict(AgentVersionOutput(version).data)
