"""Data keys and what they seal.

Sealed secret: ``01 alg data_key_id(16) nonce(12) ciphertext tag(16)``; authenticated with it are
a label, the header, the tenant, ``table.column`` and the row's id. So a sealed value opens
nowhere but where it was put, and a change of any byte shows.
"""

import hashlib
import hmac
import os
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tenants.encryption.keyring import (
    AES_256_GCM,
    KEY_SIZE,
    NONCE_SIZE,
    VERSION,
    Keyring,
    Tampered,
)
from tenants.encryption.packing import packed
from tenants.encryption.secret import Secret

_HEADER_SIZE = 2 + 16


@dataclass(frozen=True)
class WrappedKey:
    """A tenant's data key as it is stored."""

    id: UUID
    tenant_id: UUID
    wrapped: bytes

    @property
    def context(self) -> bytes:
        """What the wrapping is bound to."""
        return packed(self.tenant_id.bytes, self.id.bytes, "secrets")


@dataclass(frozen=True)
class Place:
    """Where a sealed value is stored: ``"table.column"`` and the row."""

    column: str
    row_id: UUID


class DataKeys:
    """Everything that is done with a data key. Nothing is kept: unwrapping takes microseconds."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    def new(self, *, key_id: UUID, tenant_id: UUID) -> WrappedKey:
        """A fresh data key for a tenant."""
        blank = WrappedKey(key_id, tenant_id, b"")
        fresh = Secret(os.urandom(KEY_SIZE))
        return WrappedKey(key_id, tenant_id, self._keyring.wrap(fresh, blank.context))

    def rewrap(self, key: WrappedKey) -> WrappedKey:
        """The same data key under the keyring's active key; what it sealed stays as it is."""
        wrapped = self._keyring.wrap(self._unwrapped(key), key.context)
        return WrappedKey(key.id, key.tenant_id, wrapped)

    def seal(self, key: WrappedKey, place: Place, secret: Secret[str]) -> bytes:
        """``secret`` encrypted for ``place``."""
        header = bytes((VERSION, AES_256_GCM)) + key.id.bytes
        nonce = os.urandom(NONCE_SIZE)
        cipher = AESGCM(self._unwrapped(key).reveal())
        return (
            header
            + nonce
            + cipher.encrypt(nonce, secret.reveal().encode(), _sealing(header, key, place))
        )

    def open(self, key: WrappedKey, place: Place, sealed: bytes) -> Secret[str]:
        """The secret sealed for ``place``. Raises KeyUnavailable or Tampered."""
        header, body = sealed[:_HEADER_SIZE], sealed[_HEADER_SIZE:]
        if header != bytes((VERSION, AES_256_GCM)) + key.id.bytes or len(body) <= NONCE_SIZE:
            raise Tampered("the sealed value has an unknown form or another data key")
        cipher = AESGCM(self._unwrapped(key).reveal())
        nonce, ciphertext = body[:NONCE_SIZE], body[NONCE_SIZE:]
        try:
            return Secret(cipher.decrypt(nonce, ciphertext, _sealing(header, key, place)).decode())
        except InvalidTag:
            raise Tampered("the sealed value does not open in this place") from None

    def digest(self, key: WrappedKey, purpose: str, *parts: bytes | str) -> bytes:
        """A keyed hash of ``parts``, under a key derived for ``purpose``."""
        derived = HKDF(SHA256(), KEY_SIZE, salt=None, info=packed("llmbroker", purpose))
        subkey = Secret(derived.derive(self._unwrapped(key).reveal()))
        return hmac.digest(subkey.reveal(), packed(*parts), hashlib.sha256)

    def _unwrapped(self, key: WrappedKey) -> Secret[bytes]:
        return self._keyring.unwrap(key.wrapped, key.context)


def _sealing(header: bytes, key: WrappedKey, place: Place) -> bytes:
    return packed(
        "llmbroker sealed secret", header, key.tenant_id.bytes, place.column, place.row_id.bytes
    )
