"""The one namespace of a tenant's tools, whatever kind they are.

The tenant's row is locked until the tool is stored, so that two requests cannot take one name
for two kinds of tools.
"""

from __future__ import annotations

from agents.selectors import plugin_is_taken, tool_name_is_taken
from agents.tool_registry import installed_tools
from agents.tool_sources.prompts import split
from tenants.errors import Conflict
from tenants.models import Tenant


def claim_name(*, tenant: Tenant, name: str) -> None:
    """Refuse a name that another tool has. Raises Conflict. Within the storing transaction."""
    plugin, _ = split(name)
    _lock(tenant)
    _refuse_installed(plugin, "slug")
    if tool_name_is_taken(tenant, name):
        raise _taken(
            f"There is a tool {name} already, or an MCP server whose tools are {plugin}-….", "slug"
        )


def claim_plugin(*, tenant: Tenant, plugin: str) -> None:
    """Refuse a plugin name under which there are tools: its server names them as it likes."""
    _lock(tenant)
    _refuse_installed(plugin, "plugin")
    if plugin_is_taken(tenant, plugin):
        raise _taken(f"There are tools of the plugin {plugin} already.", "plugin")


def _lock(tenant: Tenant) -> None:
    Tenant.objects.select_for_update().get(pk=tenant.pk)


def _refuse_installed(plugin: str, param: str) -> None:
    if plugin in {split(name)[0] for name in installed_tools()}:
        raise _taken(
            f"The plugin name {plugin} is the installation's own: choose another one.", param
        )


def _taken(message: str, param: str) -> Conflict:
    return Conflict(message, code="tool_name_taken", param=param)
