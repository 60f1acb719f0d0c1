"""All the tools of one tenant: the installation's, and those that it has added."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from agents.models import Run
from agents.selectors import http_tools_of, mcp_servers_of, versions_in_use
from agents.tool_registry import Tool, ToolRegistry, installed_tools
from agents.tool_sources.http_tools import http_tool
from agents.tool_sources.mcp_tools import mcp_tools
from agents.tool_sources.prompts import prompt_tools
from llmbroker import Broker
from tenants.models import Tenant


class TenantTools(ToolRegistry):
    """The tools of a tenant, which are read once a name is asked for that the installation's
    own do not have: most runs use no other."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__()
        self._tenant = tenant

    @functools.cached_property
    def _all(self) -> ToolRegistry:
        return tools_of(self._tenant)

    def __getitem__(self, name: str) -> Tool:
        installed = installed_tools()
        return installed[name] if name in installed else self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def tools_of(
    tenant: Tenant,
    *,
    service: Any = None,
    chat_options: Mapping[str, Any] | None = None,
    at: datetime | None = None,
) -> ToolRegistry:
    """What runs of the tenant may use, prompts as they were ``at`` a time or are now.

    ``service`` answers prompt functions, with ``chat_options``; without one they can be listed.
    """
    http = map(http_tool, http_tools_of(tenant).filter(enabled=True))
    mcp = chain.from_iterable(map(mcp_tools, mcp_servers_of(tenant).filter(enabled=True)))
    tools = installed_tools().with_tools(chain(http, mcp))
    prompts = prompt_tools(versions_in_use(tenant, at), tools, service, chat_options)
    return tools.with_tools(prompts)


def tools_of_run(run: Run, broker: Broker) -> ToolRegistry:
    """What a run may use, in the name of its scope: its prompt functions' calls carry its trace."""
    installed = installed_tools()
    if all(name in installed for name in run.tools):
        return installed
    return tools_of(
        run.tenant,
        service=broker.for_scope(str(run.scope_id)),
        chat_options={"trace_id": run.trace_id},
        at=run.created_at,
    )
