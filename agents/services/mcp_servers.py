"""MCP servers, which a tenant's admins name, and the lists of what they offer."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.models import McpServer, Run
from agents.sealing import seal
from agents.selectors import mcp_servers_of
from agents.services.connections import release_connection
from agents.services.tool_names import claim_plugin
from agents.tool_registry import ToolRegistry, installed_tools
from agents.tool_sources.addresses import tool_url
from agents.tool_sources.catalog import tools_of_run
from agents.tool_sources.mcp_errors import McpUnavailableError
from agents.tool_sources.prompts import split
from llmbroker import Broker
from tenants.encryption import Secret
from tenants.errors import ApplicationError
from tenants.models import Tenant

STALE = timedelta(hours=1)
"""How old a list may be before a run that uses the server has it asked again."""

log = logging.getLogger(__name__)


def create_mcp_server(
    *, tenant: Tenant, values: dict[str, Any], token: Secret[str] | None = None
) -> McpServer:
    """Store a server, and ask it for its tools; if it does not answer, ``last_error`` says why.

    Raises InvalidInput (url) and Conflict (plugin).
    """
    server = McpServer(tenant=tenant, **values)
    server.url = tool_url(server.url)
    with transaction.atomic():
        claim_plugin(tenant=tenant, plugin=server.plugin)
        seal(server, token)
        server.save(force_insert=True)
    return refresh_tools(server=server)


def update_mcp_server(
    *, server: McpServer, values: dict[str, Any], token: Secret[str] | None = None
) -> McpServer:
    """Change the given fields, and ask the server again. A token replaces the one there is."""
    for name, value in values.items():
        setattr(server, name, value)
    server.url = tool_url(server.url)
    changed = [*values, "updated_at"]
    if token is not None:
        seal(server, token)
        changed += ["sealed", "data_key"]
    server.save(update_fields=changed)
    return refresh_tools(server=server)


def refresh_tools(*, server: McpServer) -> McpServer:
    """Ask the server for its tools now. What it listed before stays if it does not answer."""
    from agents.tool_sources.mcp_calls import list_tools  # noqa: PLC0415 - the SDK is dear to import

    release_connection()
    try:
        server.tools = list_tools(server)
    except (McpUnavailableError, ApplicationError) as error:
        server.last_error = str(error)[:500]
    else:
        server.last_error = ""
    server.listed_at = timezone.now()
    # Not updated_at: the configuration is what it was, and so is the connection.
    McpServer.objects.filter(pk=server.pk, updated_at=server.updated_at).update(
        tools=server.tools, last_error=server.last_error, listed_at=server.listed_at
    )
    return server


def delete_mcp_server(*, server: McpServer) -> None:
    """Remove a server; runs that name its tools go on without them."""
    server.delete()


def fresh_tools_of_run(run: Run, broker: Broker) -> ToolRegistry:
    """What a run may use; servers that have not been asked for long are asked first."""
    installed = installed_tools()
    plugins = {split(name)[0] for name in run.tools if name not in installed}
    if not plugins:
        return installed
    old = Q(listed_at__isnull=True) | Q(listed_at__lt=timezone.now() - STALE)
    for server in mcp_servers_of(run.tenant).filter(old, plugin__in=plugins, enabled=True):
        log.info("asking MCP server %s for its tools again", server.pk)
        refresh_tools(server=server)
    return tools_of_run(run, broker)
