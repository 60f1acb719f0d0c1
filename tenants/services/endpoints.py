"""A tenant's own endpoints."""

from typing import Any

from django.db import transaction

from tenants.addresses import address_policy
from tenants.endpoint_urls import endpoint_url
from tenants.errors import NotFound
from tenants.models import Endpoint, Scope, Tenant
from tenants.services.audit import difference, note, values_of
from tenants.services.integrity import conflict_if

_ONCE = "endpoint_name_per_tenant"


def add_endpoint(*, tenant: Tenant, scope: Scope | None, values: dict[str, Any]) -> Endpoint:
    """An endpoint of one scope, or (without) of every scope of the tenant."""
    endpoint = Endpoint(tenant=tenant, scope=scope)
    return _saved(endpoint, values)


def update_endpoint(*, endpoint: Endpoint, values: dict[str, Any]) -> Endpoint:
    """Change the given fields."""
    return _saved(endpoint, values)


@transaction.atomic
def delete_endpoint(*, endpoint: Endpoint) -> None:
    """Remove an endpoint; the next call already goes without it."""
    note("endpoint.deleted", endpoint, tenant_id=endpoint.tenant_id)
    endpoint.delete()


def _saved(endpoint: Endpoint, values: dict[str, Any]) -> Endpoint:
    is_new = endpoint._state.adding  # noqa: SLF001 - Django has no public word for it
    before = values_of(endpoint, values)
    for name, value in values.items():
        setattr(endpoint, name, value)
    endpoint.base_url = endpoint_url(endpoint.base_url, policy=address_policy())
    if endpoint.scope is not None and endpoint.scope.tenant_id != endpoint.tenant_id:
        raise NotFound("No such scope.", param="scope")
    with conflict_if(_ONCE, f"There is an endpoint {endpoint.name} already.", param="name"):
        endpoint.save()
        action = "endpoint.added" if is_new else "endpoint.changed"
        told = difference(before, endpoint)
        note(action, endpoint, tenant_id=endpoint.tenant_id, changes=told)
    return endpoint
