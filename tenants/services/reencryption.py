"""Sealing a tenant's secrets anew, under a data key that nothing has seen before."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, QuerySet

from tenants import vault
from tenants.encryption import KeyUnavailable, Place, Tampered
from tenants.models import DataKey, ProviderKey, Tenant
from tenants.services.data_keys import new_data_key
from tenants.services.keys import fingerprint_of

BATCH = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Resealed:
    """How many secrets of a tenant have moved, and which do not open and stay as they are."""

    moved: int
    failed: list[UUID]


def sealed_models() -> Iterator[type[Model]]:
    """Every model with a secret: what is ``sealed`` opens with its ``data_key``, in its row."""
    for model in apps.get_models():
        names = {field.name for field in model._meta.get_fields()}  # noqa: SLF001 - documented
        if {"sealed", "data_key", "tenant"} <= names:
            yield model


def tenants_sealed_before(moment: datetime) -> QuerySet[Tenant]:
    """Tenants with secrets whose newest data key is older than ``moment``."""
    keys = DataKey.objects.filter(tenant=OuterRef("pk"))
    return Tenant.objects.filter(
        Exists(keys), ~Exists(keys.filter(created_at__gte=moment))
    ).order_by("pk")


@transaction.atomic
def reseal_secrets(*, tenant_id: UUID) -> Resealed:
    """Move all secrets of a tenant under a new data key, together.

    Calls under way go on: a row that was read before is opened by the data key read with it.
    The former data key stays for the tokens and payloads that need it.
    """
    tenant = Tenant.objects.select_for_update().get(pk=tenant_id)  # nothing is sealed meanwhile
    fresh = new_data_key(tenant=tenant)
    moved = 0
    failed: list[UUID] = []
    for model in sealed_models():
        rows: QuerySet[Any] = model.objects.filter(  # type: ignore[attr-defined]
            tenant=tenant, data_key__isnull=False
        )
        changed = ["sealed", "data_key", *(["fingerprint"] if model is ProviderKey else [])]
        locked = rows.select_related("data_key").select_for_update(of=("self",))
        for batch in _batches(locked.iterator(BATCH)):
            unread = {row.pk for row in batch if not _reseal(row, fresh)}
            done = [row for row in batch if row.pk not in unread]
            moved += len(done)
            failed += unread
            rows.bulk_update(done, changed)
    return Resealed(moved, failed)


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, BATCH)):
        yield batch


def _reseal(row: Any, fresh: DataKey) -> bool:
    keys = vault.data_keys()
    place = Place(f"{row._meta.db_table}.sealed", row.pk)  # noqa: SLF001 - documented
    try:
        secret = keys.open(vault.wrapped(row.data_key), place, bytes(row.sealed))
    except (KeyUnavailable, Tampered) as error:
        log.warning("the secret of %s %s cannot be re-encrypted: %s", place.column, row.pk, error)
        return False
    row.data_key, row.sealed = fresh, keys.seal(vault.wrapped(fresh), place, secret)
    if isinstance(row, ProviderKey):
        row.fingerprint = fingerprint_of(row, secret)
    return True
