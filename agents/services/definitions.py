"""Agents, which a tenant's admins define for all its members."""

from __future__ import annotations

from typing import Any

from agents.models import Agent
from agents.tool_registry import ToolRegistry
from tenants.models import Tenant
from tenants.services.integrity import conflict_if


def create_agent(*, tenant: Tenant, available: ToolRegistry, values: dict[str, Any]) -> Agent:
    """Define an agent. Raises InvalidInput (tools) and Conflict (slug)."""
    return _saved(Agent(tenant=tenant), available, values)


def update_agent(*, agent: Agent, available: ToolRegistry, values: dict[str, Any]) -> Agent:
    """Change the given fields. Runs that exist keep what they were created with."""
    return _saved(agent, available, values)


def delete_agent(*, agent: Agent) -> None:
    """Remove an agent; its runs stay."""
    agent.delete()


def _saved(agent: Agent, available: ToolRegistry, values: dict[str, Any]) -> Agent:
    for name, value in values.items():
        setattr(agent, name, value)
    available.require(agent.tools)
    with conflict_if(
        "agent_slug_per_tenant", f"There is an agent {agent.slug} already.", param="slug"
    ):
        agent.save()
    return agent
