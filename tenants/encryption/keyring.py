"""The keys that encrypt the tenants' data keys, by id: several at once, so that they can change.

Wrapped key: ``01 alg len kek_id nonce(12) ciphertext tag(16)``; authenticated with it are a
label, the header up to the nonce, and the context that the caller gives.
"""

import base64
import binascii
import hashlib
import hmac
import os
import re
from typing import Protocol, runtime_checkable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tenants.encryption.packing import packed
from tenants.encryption.secret import Secret

VERSION = 1
AES_256_GCM = 1
NONCE_SIZE = 12
KEY_SIZE = 32

_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class KeyUnavailable(Exception):  # noqa: N818 - named for what happened
    """The keyring has no key of that id, or cannot say."""

    def __init__(self, kek_id: str, why: str = "") -> None:
        super().__init__(why or f"BROKER_ENCRYPTION_KEYS holds no key with the id {kek_id!r}")
        self.kek_id = kek_id


class Tampered(Exception):  # noqa: N818
    """The bytes were changed, moved from another place, or sealed under another key."""


@runtime_checkable
class Keyring(Protocol):
    """Where the key-encrypting keys are: the environment, or a key service (BROKER_KEYRING).

    What cannot be asked now, as a service that does not answer, is KeyUnavailable too.
    """

    @property
    def active(self) -> str:
        """The id of the key that wraps from now on."""
        ...

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all keys that can unwrap."""
        ...

    def wrap(self, data_key: Secret[bytes], context: bytes) -> bytes:
        """``data_key`` under the active key, bound to ``context``."""
        ...

    def unwrap(self, wrapped: bytes, context: bytes) -> Secret[bytes]:
        """The data key. Raises KeyUnavailable or Tampered."""
        ...

    def check_value(self, kek_id: str) -> bytes:
        """What tells one key from another under the same id, and tells nothing else."""
        ...


class EnvKeyring:
    """Keys written as ``"new:<base64 of 32 bytes>,old:<…>"``; the first is the active one."""

    def __init__(self, text: str) -> None:
        self._keys = _parsed(text)
        self.active = next(iter(self._keys))
        self.ids = frozenset(self._keys)

    def __repr__(self) -> str:
        return f"EnvKeyring({', '.join(self._keys)})"

    def wrap(self, data_key: Secret[bytes], context: bytes) -> bytes:
        """See Keyring."""
        kek_id = self.active.encode()
        header = bytes((VERSION, AES_256_GCM, len(kek_id))) + kek_id
        nonce = os.urandom(NONCE_SIZE)
        cipher = AESGCM(self._keys[self.active].reveal())
        return header + nonce + cipher.encrypt(nonce, data_key.reveal(), _wrapping(header, context))

    def unwrap(self, wrapped: bytes, context: bytes) -> Secret[bytes]:
        """See Keyring."""
        header_end = 3 + (wrapped[2] if len(wrapped) > 2 else 0)
        header, body = wrapped[:header_end], wrapped[header_end:]
        if header[:2] != bytes((VERSION, AES_256_GCM)) or len(body) <= NONCE_SIZE:
            raise Tampered("the wrapped data key has an unknown form")
        kek = self._key(header[3:].decode("ascii", "replace"))
        try:
            return Secret(
                AESGCM(kek.reveal()).decrypt(
                    body[:NONCE_SIZE], body[NONCE_SIZE:], _wrapping(header, context)
                )
            )
        except InvalidTag:
            raise Tampered("the wrapped data key does not open") from None

    def check_value(self, kek_id: str) -> bytes:
        """See Keyring."""
        label = packed("llmbroker key check", kek_id)
        return hmac.digest(self._key(kek_id).reveal(), label, hashlib.sha256)

    def _key(self, kek_id: str) -> Secret[bytes]:
        try:
            return self._keys[kek_id]
        except KeyError:
            raise KeyUnavailable(kek_id) from None


def _wrapping(header: bytes, context: bytes) -> bytes:
    return packed("llmbroker wrapped key", header, context)


def _parsed(text: str) -> dict[str, Secret[bytes]]:
    """The keys by id, in the order given. ValueError in words that repeat no key."""
    keys: dict[str, Secret[bytes]] = {}
    for number, entry in enumerate(text.split(","), start=1):
        kek_id, _, encoded = entry.strip().partition(":")
        if not _KEY_ID.fullmatch(kek_id):
            raise ValueError(f"entry {number} does not start with an id and a colon")
        if kek_id in keys:
            raise ValueError(f"the id {kek_id!r} stands there twice")
        key = _decoded(encoded)
        if key is None:
            raise ValueError(f"the key {kek_id!r} is not the base64 of {KEY_SIZE} bytes")
        keys[kek_id] = key
    return keys


def _decoded(encoded: str) -> Secret[bytes] | None:
    try:
        key = Secret(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        return None
    return key if len(key.reveal()) == KEY_SIZE else None
