"""Each tenant's data key, and its move from one key of the keyring to the next."""

import hmac
import logging
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from uuid_utils.compat import uuid7

from tenants import vault
from tenants.encryption import KeyUnavailable, Tampered
from tenants.errors import InvalidInput, NotFound, SecretUnavailable
from tenants.models import DataKey, EncryptionKey, Tenant

log = logging.getLogger(__name__)


@transaction.atomic
def data_key_for_sealing(*, tenant: Tenant) -> DataKey:
    """The tenant's newest data key that opens; a new one where there is none."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)  # two first keys at once share one
    newest = DataKey.objects.filter(tenant=tenant).order_by("-pk").first()
    if newest is None or not vault.data_key_opens(newest):
        return new_data_key(tenant=tenant)
    return newest


@transaction.atomic
def new_data_key(*, tenant: Tenant) -> DataKey:
    """A fresh data key, under the active key of the keyring."""
    keyring = vault.keyring()
    register_encryption_key(kek_id=keyring.active)
    fresh = vault.data_keys().new(key_id=uuid7(), tenant_id=tenant.pk)
    return DataKey.objects.create(
        id=fresh.id, tenant=tenant, wrapped=fresh.wrapped, kek_id=keyring.active
    )


def register_encryption_key(*, kek_id: str) -> None:
    """Note the key's check value before its first use; refuse another key under a known id.

    Raises SecretUnavailable for such a one.
    """
    value = vault.keyring().check_value(kek_id)
    known, _ = EncryptionKey.objects.get_or_create(kek_id=kek_id, defaults={"check_value": value})
    if not hmac.compare_digest(bytes(known.check_value), value):
        raise SecretUnavailable(
            f"BROKER_ENCRYPTION_KEYS holds another key under the id {kek_id!r} than before.",
            code="wrong_encryption_key",
        )


@dataclass(frozen=True)
class Batch:
    """What one batch of a rotation did, and where the next one starts."""

    rewrapped: int
    failed: list[UUID]
    last: UUID | None


@transaction.atomic
def rewrap_batch(*, after: UUID | None, size: int) -> Batch:
    """Move up to ``size`` data keys, in order of id after ``after``, under the active key.

    What is moved stays moved: an interrupted rotation is simply started again.
    """
    keyring, keys = vault.keyring(), vault.data_keys()
    register_encryption_key(kek_id=keyring.active)
    given_up = EncryptionKey.objects.filter(abandoned_at__isnull=False)
    rows = DataKey.objects.exclude(kek_id=keyring.active).exclude(
        kek_id__in=given_up.exclude(kek_id__in=keyring.ids).values("kek_id")
    )
    if after is not None:
        rows = rows.filter(pk__gt=after)
    batch = list(rows.select_for_update().order_by("pk")[:size])
    moved, failed = [], []
    for row in batch:
        try:
            row.wrapped = keys.rewrap(vault.wrapped(row)).wrapped
        except (KeyUnavailable, Tampered) as error:
            log.warning("data key %s cannot be rewrapped: %s", row.pk, error)
            failed.append(row.pk)
        else:
            row.kek_id = keyring.active
            moved.append(row)
    DataKey.objects.bulk_update(moved, ["wrapped", "kek_id"])
    return Batch(len(moved), failed, batch[-1].pk if batch else None)


def forget_unused_encryption_keys() -> list[str]:
    """Drop the check values of keys that no data key needs; they may leave the setting."""
    unused = EncryptionKey.objects.exclude(kek_id=vault.keyring().active).exclude(
        kek_id__in=DataKey.objects.values("kek_id")
    )
    ids = list(unused.values_list("kek_id", flat=True))
    unused.delete()
    return ids


def abandon_encryption_key(*, kek_id: str, now: datetime) -> None:
    """Give up a lost key: start-up no longer asks for it, and what it encrypted is re-entered.

    Raises NotFound for a key that was never used, InvalidInput for one that is not lost.
    """
    if kek_id in vault.keyring().ids:
        raise InvalidInput(f"{kek_id!r} is in BROKER_ENCRYPTION_KEYS: it is not lost.")
    if not EncryptionKey.objects.filter(kek_id=kek_id).update(abandoned_at=now):
        raise NotFound(f"Nothing was ever encrypted under {kek_id!r}.")
