"""Where encryption meets the database: which key opens which row.

A secret that does not open is SecretUnavailable, for the caller to pass on: nothing here or
above falls back to another key, which would change who pays.
"""

import functools
import logging
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from tenants.encryption import (
    CachedKeyring,
    DataKeys,
    EnvKeyring,
    Keyring,
    KeyUnavailable,
    Place,
    Secret,
    Tampered,
    WrappedKey,
)
from tenants.errors import SecretUnavailable
from tenants.models import DataKey, ProviderKey

log = logging.getLogger(__name__)


def keyring() -> Keyring:
    """The keyring of the settings. Raises ImproperlyConfigured if it cannot be read."""
    if settings.BROKER_KEYRING:
        return _plugged(settings.BROKER_KEYRING)
    parsed = _keyring(settings.BROKER_ENCRYPTION_KEYS)
    if isinstance(parsed, str):
        raise ImproperlyConfigured(
            f"BROKER_ENCRYPTION_KEYS: {parsed}."
            " It reads 'new:<base64 of 32 bytes>,old:<…>', the encrypting key first;"
            " `python -m broker_project.local.secrets` prints one."
        )
    return parsed


def data_keys() -> DataKeys:
    """Seals and opens with the keyring of the settings."""
    return DataKeys(keyring())


def wrapped(key: DataKey) -> WrappedKey:
    """The stored data key as encryption takes it."""
    return WrappedKey(key.id, key.tenant_id, bytes(key.wrapped))


def place_of_value(key_id: UUID) -> Place:
    """Where the value of a provider key is sealed to."""
    return Place("tenants_providerkey.sealed", key_id)


def open_value(key: ProviderKey) -> Secret[str]:
    """The value of ``key`` (with its data key loaded). Raises SecretUnavailable."""
    try:
        return data_keys().open(wrapped(key.data_key), place_of_value(key.id), bytes(key.sealed))
    except (KeyUnavailable, Tampered) as error:
        log.error("provider key %s cannot be opened: %s", key.id, error)  # noqa: TRY400 - no traceback
        raise SecretUnavailable(
            f"The stored key {key.ref} ({key.id}) cannot be opened: enter its value again."
        ) from None


def is_readable(key: ProviderKey) -> bool:
    """Whether the value of ``key`` opens, for lists that show which needs to be entered again."""
    try:
        open_value(key)
    except SecretUnavailable:
        return False
    return True


def data_key_opens(key: DataKey) -> bool:
    """Whether the keyring still opens a data key."""
    try:
        data_keys().rewrap(wrapped(key))
    except (KeyUnavailable, Tampered):
        return False
    return True


@functools.lru_cache(maxsize=1)
def _plugged(path: str) -> Keyring:
    """The keyring that BROKER_KEYRING names: a callable without arguments, by its dotted path."""
    try:
        made = import_string(path)()
    except ImportError as error:
        raise ImproperlyConfigured(f"BROKER_KEYRING: {error}") from None
    if not isinstance(made, Keyring):
        raise ImproperlyConfigured(
            f"BROKER_KEYRING: {path} gives no tenants.encryption.Keyring, which has active, ids,"
            " wrap, unwrap and check_value."
        )
    return CachedKeyring(made)


@functools.lru_cache(maxsize=1)
def _keyring(text: str) -> Keyring | str:
    """The keyring, or what is wrong: an error kept as text has no traceback that holds the keys."""
    try:
        return EnvKeyring(text)
    except ValueError as error:
        return str(error)
