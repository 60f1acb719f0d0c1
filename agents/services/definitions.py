"""Agents, which a tenant's admins define for all its members."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agents.models import Agent, AgentVersion, PromptFunction
from agents.selectors import prompt_of, version_of
from agents.services.agent_versions import as_it_was, note_version
from agents.services.instructions import check_instructions
from agents.tool_registry import ToolRegistry
from tenants.errors import InvalidInput, NotFound
from tenants.models import Tenant
from tenants.services.integrity import conflict_if


@transaction.atomic
def create_agent(
    *, tenant: Tenant, available: ToolRegistry, values: dict[str, Any], by: User | None = None
) -> Agent:
    """Define an agent. Raises NotFound (prompt), InvalidInput and Conflict (slug)."""
    return _saved(Agent(tenant=tenant), available, values, by)


@transaction.atomic
def update_agent(
    *, agent: Agent, available: ToolRegistry, values: dict[str, Any], by: User | None = None
) -> Agent:
    """Change the given fields, as a new version. Runs that exist keep what they were created with.

    ``agent`` may also hold changes of its own that are not saved yet.
    """
    Agent.objects.select_for_update().filter(pk=agent.pk).first()
    return _saved(agent, available, values, by)


@transaction.atomic
def restore_agent(
    *, version: AgentVersion, available: ToolRegistry, by: User | None = None
) -> Agent:
    """Make the agent what it was in ``version``, as a new version.

    Raises NotFound (prompt) and InvalidInput where what it used is gone.
    """
    agent = Agent.objects.select_for_update().get(pk=version.agent_id)
    return _saved(agent, available, as_it_was(version), by)


def delete_agent(*, agent: Agent) -> None:
    """Remove an agent with its versions; its runs stay."""
    agent.delete()


def _saved(agent: Agent, available: ToolRegistry, values: dict[str, Any], by: User | None) -> Agent:
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
    note_version(agent, by=by)
    return agent


def _prompt(agent: Agent, slug: str | None) -> PromptFunction | None:
    return None if slug is None else prompt_of(agent.tenant, slug, param="prompt")
