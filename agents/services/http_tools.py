"""HTTP tools, which a tenant's admins define."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import transaction

from agents.models import HttpTool
from agents.sealing import seal
from agents.services.tool_names import claim_name
from agents.tool_sources.addresses import tool_url
from agents.tool_sources.signing import new_secret
from tenants.encryption import Secret
from tenants.models import Tenant


class NewSecret(NamedTuple):
    """A tool with the secret that signs its requests. Nobody can read it again."""

    tool: HttpTool
    secret: Secret[str]


@transaction.atomic
def create_http_tool(*, tenant: Tenant, values: dict[str, Any]) -> NewSecret:
    """Define a tool. Raises InvalidInput (url) and Conflict (slug)."""
    tool = HttpTool(tenant=tenant, **values)
    claim_name(tenant=tenant, name=tool.slug)
    tool.url = tool_url(tool.url)
    return _with_new_secret(tool)


def update_http_tool(*, tool: HttpTool, values: dict[str, Any]) -> HttpTool:
    """Change the given fields; the next call of the tool already follows them."""
    for name, value in values.items():
        setattr(tool, name, value)
    tool.url = tool_url(tool.url)
    tool.save(update_fields=[*values, "updated_at"])
    return tool


def replace_secret(*, tool: HttpTool) -> NewSecret:
    """Sign with another secret from now on."""
    return _with_new_secret(tool)


def delete_http_tool(*, tool: HttpTool) -> None:
    """Remove a tool; runs that name it go on without it."""
    tool.delete()


def _with_new_secret(tool: HttpTool) -> NewSecret:
    secret = new_secret()
    seal(tool, secret)
    tool.save()
    return NewSecret(tool, secret)
