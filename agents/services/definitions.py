"""Agents, which a tenant's admins define for all its members."""

from __future__ import annotations

from typing import Any

from agents.models import Agent, PromptFunction
from agents.selectors import prompt_of, version_of
from agents.services.instructions import check_instructions
from agents.tool_registry import ToolRegistry
from tenants.errors import InvalidInput, NotFound
from tenants.models import Tenant
from tenants.services.integrity import conflict_if


def create_agent(*, tenant: Tenant, available: ToolRegistry, values: dict[str, Any]) -> Agent:
    """Define an agent. Raises NotFound (prompt), InvalidInput and Conflict (slug)."""
    return _saved(Agent(tenant=tenant), available, values)


def update_agent(*, agent: Agent, available: ToolRegistry, values: dict[str, Any]) -> Agent:
    """Change the given fields. Runs that exist keep what they were created with."""
    return _saved(agent, available, values)


def delete_agent(*, agent: Agent) -> None:
    """Remove an agent; its runs stay."""
    agent.delete()


def _saved(agent: Agent, available: ToolRegistry, values: dict[str, Any]) -> Agent:
    for name, value in values.items():
        setattr(agent, name, _prompt(agent, value) if name == "prompt" else value)
    available.require(agent.tools)
    if agent.prompt is not None:
        if agent.prompt.tenant_id != agent.tenant_id:
            raise NotFound("No such prompt function.", param="prompt")
        if agent.instructions:
            raise InvalidInput("Instructions are written here or made by a prompt.", param="prompt")
        check_instructions(version_of(agent.prompt), available)
    with conflict_if(
        "agent_slug_per_tenant", f"There is an agent {agent.slug} already.", param="slug"
    ):
        agent.save()
    return agent


def _prompt(agent: Agent, slug: str | None) -> PromptFunction | None:
    return None if slug is None else prompt_of(agent.tenant, slug, param="prompt")
