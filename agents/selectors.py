"""Reads. Each takes the tenant, scope or caller that bounds what it may find."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from agents.models import Agent, Run
from tenants.caller import Caller
from tenants.errors import NotFound
from tenants.models import Scope, Tenant


def agents_of(tenant: Tenant) -> QuerySet[Agent]:
    """The agents of a tenant, which all its members may run."""
    return Agent.objects.filter(tenant=tenant)


def agent_of(tenant: Tenant, agent_id: UUID) -> Agent:
    """One agent of a tenant."""
    agent = agents_of(tenant).filter(id=agent_id).first()
    if agent is None:
        raise NotFound("No such agent.")
    return agent


def agent_by_slug(tenant: Tenant, slug: str) -> Agent:
    """The agent of a tenant with that slug."""
    agent = agents_of(tenant).filter(slug=slug).first()
    if agent is None:
        raise NotFound("No such agent.", param="agent")
    return agent


def runs_of(caller: Caller) -> QuerySet[Run]:
    """The runs of the caller's scope."""
    return Run.objects.select_related("agent").filter(tenant=caller.tenant, scope=caller.scope)


def run_of(caller: Caller, run_id: UUID) -> Run:
    """One run of the caller's scope."""
    run = runs_of(caller).filter(id=run_id).first()
    if run is None:
        raise NotFound("No such run.")
    return run


def run_by_idempotency_key(scope: Scope, key: str | None) -> Run | None:
    """The run that a scope created with that key."""
    runs = Run.objects.select_related("agent").filter(scope=scope, idempotency_key=key)
    return runs.first() if key else None
