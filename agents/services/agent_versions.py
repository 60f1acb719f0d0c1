"""Versions of agents: every change of what an agent does is a new one, and none ever changes."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from agents.models import Agent, AgentVersion

VERSIONED = ("instructions", "tools", "max_steps", "operation", "prefer", "output_schema")
"""Fields that a version holds as the agent does; the prompt is held by its slug."""


def note_version(agent: Agent, *, by: User | None = None) -> AgentVersion:
    """The version that the agent is now, a new one if it has changed.

    Within a transaction that has locked the agent, or made it.
    """
    newest = newest_version(agent)
    values = _values(agent)
    if newest is not None and all(getattr(newest, name) == values[name] for name in values):
        return newest
    number = 1 if newest is None else newest.number + 1
    return AgentVersion.objects.create(agent=agent, number=number, created_by=by, **values)


def newest_version(agent: Agent) -> AgentVersion | None:
    """What the agent is now."""
    return agent.versions.order_by("-number").first()


def as_it_was(version: AgentVersion) -> dict[str, Any]:
    """What to set of an agent for it to be as in ``version``."""
    return {"prompt": version.prompt, **{name: getattr(version, name) for name in VERSIONED}}


def _values(agent: Agent) -> dict[str, Any]:
    prompt = agent.prompt.slug if agent.prompt is not None else None
    return {"prompt": prompt, **{name: getattr(agent, name) for name in VERSIONED}}
