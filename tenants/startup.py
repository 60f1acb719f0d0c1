"""Whether the encryption keys of the settings are the ones that the database was written with."""

import hmac
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured
from django.db.models import Exists, OuterRef

from tenants import vault
from tenants.models import DataKey, EncryptionKey


@dataclass(frozen=True)
class KeyFault:
    """One key that does not fit, and what to do."""

    id: str
    message: str
    hint: str


def encryption_key_faults() -> list[KeyFault]:
    """What is wrong with BROKER_ENCRYPTION_KEYS for this database."""
    keyring = vault.keyring()
    in_use = Exists(DataKey.objects.filter(kek_id=OuterRef("kek_id")))
    faults = []
    for known in EncryptionKey.objects.annotate(in_use=in_use).order_by("kek_id"):
        if known.kek_id in keyring.ids:
            value = keyring.check_value(known.kek_id)
            if not hmac.compare_digest(value, bytes(known.check_value)):
                faults.append(_wrong(known.kek_id))
        elif known.in_use and known.abandoned_at is None:
            faults.append(_missing(known.kek_id))
    return faults


def require_encryption_keys() -> None:
    """For the start of a process: ImproperlyConfigured unless the keys fit the database."""
    faults = encryption_key_faults()
    if faults:
        raise ImproperlyConfigured(
            "\n".join(f"{fault.message}\n  {fault.hint}" for fault in faults)
        )


def _wrong(kek_id: str) -> KeyFault:
    return KeyFault(
        "tenants.E001",
        f"BROKER_ENCRYPTION_KEYS: the key {kek_id!r} is not the one that encrypted this database.",
        "Put the former key back under that id, and give a new key an id of its own.",
    )


def _missing(kek_id: str) -> KeyFault:
    return KeyFault(
        "tenants.E002",
        f"BROKER_ENCRYPTION_KEYS lacks the key {kek_id!r}, and secrets are encrypted under it.",
        "Put it back (after the active one). If it is lost for good, run 'manage.py"
        f" rotate_encryption_keys --abandon {kek_id}' and enter those provider keys again.",
    )
