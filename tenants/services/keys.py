"""Provider keys: stored sealed, replaced, switched off, marked by what providers say of them."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from uuid_utils.compat import uuid7

from tenants import vault
from tenants.encryption import Secret
from tenants.errors import InvalidInput
from tenants.key_values import hint
from tenants.models import ProviderKey, Scope
from tenants.services.audit import CHANGED, difference, note, values_of
from tenants.services.data_keys import data_key_for_sealing
from tenants.services.integrity import conflict_if

AUDITED = ("label", "priority", "status")
_ONCE = "providerkey_value_once"


def add_key(
    *,
    scope: Scope,
    ref: str,
    value: Secret[str],
    label: str = "",
    priority: int = 100,
    created_by: User | None = None,
) -> ProviderKey:
    """Store a key in a scope. Conflict if the scope already has this value for ``ref``."""
    key = ProviderKey(
        id=uuid7(),
        tenant=scope.tenant,
        scope=scope,
        ref=ref,
        label=label,
        priority=priority,
        created_by=created_by,
    )
    with _value_once(ref):
        _seal(key, value)
        key.save(force_insert=True)
        note("key.added", key, tenant_id=key.tenant_id, changes={"scope": key.scope_id})
    return key


def update_key(
    *,
    key: ProviderKey,
    value: Secret[str] | None = None,
    label: str | None = None,
    priority: int | None = None,
    status: str | None = None,
) -> ProviderKey:
    """Change what is given. A new value makes the key active again and forgets its last error.

    Raises InvalidInput.
    """
    if status == ProviderKey.Status.REFUSED:
        raise InvalidInput("Only a provider's answer marks a key refused.", param="status")
    changes: dict[str, Any] = {"label": label, "priority": priority, "status": status}
    with _value_once(key.ref):
        key = (
            ProviderKey.objects.select_for_update(of=("self",))
            .select_related("scope", "tenant")
            .get(pk=key.pk)
        )
        before = values_of(key, AUDITED)
        if value is not None:
            _seal(key, value)
            key.status, key.last_error = ProviderKey.Status.ACTIVE, ""
        for name, new in changes.items():
            if new is not None:
                setattr(key, name, new)
        key.save()
        replaced = {"value": CHANGED} if value is not None else {}
        told = {**difference(before, key), **replaced}
        note("key.changed", key, tenant_id=key.tenant_id, changes=told)
    return key


@transaction.atomic
def delete_key(*, key: ProviderKey) -> None:
    """Remove a key; the next call already goes without it."""
    note("key.deleted", key, tenant_id=key.tenant_id)
    key.delete()


@transaction.atomic
def note_refusal(*, key_id: UUID, value: Secret[str], detail: str) -> None:
    """A provider refused this value: the key is out of use until it is replaced or reactivated.

    A key that was replaced while the call was under way is left alone.
    """
    key = (
        ProviderKey.objects.select_for_update(of=("self",))
        .select_related("data_key")
        .filter(pk=key_id, status=ProviderKey.Status.ACTIVE)
        .first()
    )
    if key is None or bytes(key.fingerprint) != fingerprint_of(key, value):
        return
    key.status = ProviderKey.Status.REFUSED
    key.last_error = detail[:500]
    key.save(update_fields=["status", "last_error", "updated_at"])
    note("key.refused", key, tenant_id=key.tenant_id)


def note_use(*, key_ids: list[UUID], now: datetime, unless_since: datetime) -> None:
    """Stamp keys as used, at most once per period, since a hot row is slow to write."""
    ProviderKey.objects.filter(pk__in=key_ids).exclude(last_used_at__gt=unless_since).update(
        last_used_at=now
    )


def _seal(key: ProviderKey, value: Secret[str]) -> None:
    key.data_key = data_key_for_sealing(tenant=key.tenant)
    key.sealed = vault.data_keys().seal(
        vault.wrapped(key.data_key), vault.place_of_value(key.pk), value
    )
    key.fingerprint = fingerprint_of(key, value)
    key.hint = hint(value)


def fingerprint_of(key: ProviderKey, value: Secret[str]) -> bytes:
    """Tells whether two values are the same, to who holds the data key and nobody else."""
    return vault.data_keys().digest(
        vault.wrapped(key.data_key), "fingerprint", key.scope_id.bytes, key.ref, value.reveal()
    )


def _value_once(ref: str) -> AbstractContextManager[None]:
    return conflict_if(_ONCE, f"This value is already stored for {ref} here.", param="value")
