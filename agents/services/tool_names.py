"""The one namespace of a tenant's tools, whatever kind they are."""

from __future__ import annotations

from agents.selectors import tool_name_is_taken
from agents.tool_registry import installed_tools
from agents.tool_sources.prompts import split
from tenants.errors import Conflict
from tenants.models import Tenant


def claim_name(*, tenant: Tenant, name: str) -> None:
    """Refuse a name that another tool has, or whose plugin is the installation's own.

    Raises Conflict. Called in the transaction that stores the tool: the tenant's row is locked,
    so that two requests cannot take one name for two kinds of tools.
    """
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    plugin, _ = split(name)
    if plugin in {split(installed)[0] for installed in installed_tools()}:
        raise _taken(f"The plugin name {plugin} is the installation's own: choose another one.")
    if tool_name_is_taken(tenant, name):
        raise _taken(f"There is a tool {name} already.")


def _taken(message: str) -> Conflict:
    return Conflict(message, code="tool_name_taken", param="slug")
