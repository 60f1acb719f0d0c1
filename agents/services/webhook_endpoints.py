"""Webhook endpoints, which a tenant's admins define."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction

from agents.models import WebhookEndpoint
from agents.sealing import seal, unseal
from agents.tool_sources.addresses import tool_url
from agents.tool_sources.signing import new_secret
from tenants.encryption import Secret
from tenants.errors import Conflict, SecretUnavailable
from tenants.models import Tenant
from tenants.services.audit import CHANGED, difference, note, values_of

AUDITED = ("url", "description", "event_types", "enabled")
MOST = 20
"""Endpoints of one tenant: each event is sent to all of them."""

SEPARATOR = " "


class NewSecret(NamedTuple):
    """An endpoint with the secret that signs what it is sent. Nobody can read it again."""

    endpoint: WebhookEndpoint
    secret: Secret[str]


@transaction.atomic
def create_webhook_endpoint(*, tenant: Tenant, values: dict[str, Any]) -> NewSecret:
    """Define an endpoint. Raises InvalidInput (url) and Conflict (too many)."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    if WebhookEndpoint.objects.filter(tenant=tenant).count() >= MOST:
        raise Conflict(f"A tenant has {MOST} webhook endpoints at most.", code="too_many")
    endpoint = WebhookEndpoint(tenant=tenant, **values)
    endpoint.url = tool_url(endpoint.url)
    secret = new_secret()
    seal(endpoint, secret)
    endpoint.save()
    note("webhook_endpoint.created", endpoint, tenant_id=tenant.pk)
    return NewSecret(endpoint, secret)


@transaction.atomic
def update_webhook_endpoint(
    *, endpoint: WebhookEndpoint, values: dict[str, Any]
) -> WebhookEndpoint:
    """Change the given fields. Switching it on again forgets its failures."""
    endpoint = _locked(endpoint)
    before = values_of(endpoint, AUDITED)
    for name, value in values.items():
        setattr(endpoint, name, value)
    endpoint.url = tool_url(endpoint.url)
    if values.get("enabled"):
        endpoint.disabled_reason, endpoint.failing_since = "", None
    endpoint.save()
    changes = difference(before, endpoint)
    note("webhook_endpoint.changed", endpoint, tenant_id=endpoint.tenant_id, changes=changes)
    return endpoint


@transaction.atomic
def rotate_secret(*, endpoint: WebhookEndpoint, overlap: timedelta, now: datetime) -> NewSecret:
    """Sign with another secret from now on, and for the time of ``overlap`` with both."""
    endpoint = _locked(endpoint)
    secret = new_secret()
    old = _newest(endpoint) if overlap else None
    both = [secret, old] if old is not None else [secret]
    seal(endpoint, Secret(SEPARATOR.join(each.reveal() for each in both)))
    endpoint.previous_until = now + overlap if old is not None else None
    endpoint.save()
    changes = {"secret": CHANGED}
    note("webhook_endpoint.changed", endpoint, tenant_id=endpoint.tenant_id, changes=changes)
    return NewSecret(endpoint, secret)


@transaction.atomic
def delete_webhook_endpoint(*, endpoint: WebhookEndpoint) -> None:
    """Remove an endpoint and the log of its deliveries."""
    note("webhook_endpoint.deleted", endpoint, tenant_id=endpoint.tenant_id)
    endpoint.delete()


def signing_secrets(endpoint: WebhookEndpoint, now: datetime) -> list[Secret[str]]:
    """The secrets that sign now, the newest first. Raises SecretUnavailable."""
    sealed = unseal(endpoint)
    if sealed is None:
        raise SecretUnavailable("The endpoint has no secret.")
    found = [Secret(text) for text in sealed.reveal().split(SEPARATOR)]
    until = endpoint.previous_until
    return found if until is not None and now < until else found[:1]


def _newest(endpoint: WebhookEndpoint) -> Secret[str] | None:
    try:
        sealed = unseal(endpoint)
    except SecretUnavailable:
        return None  # a new one is what helps then
    return None if sealed is None else Secret(sealed.reveal().split(SEPARATOR)[0])


def _locked(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    rows = WebhookEndpoint.objects.select_for_update(of=("self",))
    return rows.select_related("tenant", "data_key").get(pk=endpoint.pk)
