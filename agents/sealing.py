"""Secrets of tools and webhooks at rest: sealed by the tenant's data key, as provider keys are."""

from __future__ import annotations

import logging

from agents.models.sealed import SealedRow
from tenants import vault
from tenants.encryption import KeyUnavailable, Place, Secret, Tampered
from tenants.errors import SecretUnavailable
from tenants.services.data_keys import data_key_for_sealing

log = logging.getLogger(__name__)


def seal(row: SealedRow, secret: Secret[str] | None) -> None:
    """Put ``secret`` into ``row``, which is then to be saved; None takes out what is there."""
    if secret is None:
        row.sealed = row.data_key = None
        return
    row.data_key = data_key_for_sealing(tenant=row.tenant)
    row.sealed = vault.data_keys().seal(vault.wrapped(row.data_key), _place(row), secret)


def unseal(row: SealedRow) -> Secret[str] | None:
    """The secret of ``row``, whose data key is loaded. Raises SecretUnavailable."""
    if row.data_key is None or row.sealed is None:
        return None
    try:
        key = vault.wrapped(row.data_key)
        return vault.data_keys().open(key, _place(row), bytes(row.sealed))
    except (KeyUnavailable, Tampered) as error:
        log.error("the secret of %s cannot be opened: %s", row.pk, error)  # noqa: TRY400 - no traceback
    raise SecretUnavailable("The stored secret cannot be opened: it needs a new one.")


def is_readable(row: SealedRow) -> bool:
    """Whether the secret of ``row`` opens, for pages that show which needs to be entered again."""
    try:
        unseal(row)
    except SecretUnavailable:
        return False
    return True


def _place(row: SealedRow) -> Place:
    return Place(f"{row._meta.db_table}.sealed", row.pk)  # noqa: SLF001 - Django's public API
