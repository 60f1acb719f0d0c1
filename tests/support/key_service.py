"""A key service on the keyring's port: data keys stay inside, and what it hands out are tickets."""

import hashlib
import secrets

from tenants.encryption import KeyUnavailable, Secret, Tampered


class KeyService:
    """Keys by id, the first of them active. `away` is an outage; `asked` counts its answers."""

    def __init__(self, *ids):
        self.active = ids[0]
        self.ids = frozenset(ids)
        self.away = False
        self.asked = 0
        self._inside = {}

    def wrap(self, data_key, context):
        self._answer(self.active)
        ticket = f"{self.active}/{secrets.token_hex(16)}".encode()
        self._inside[ticket] = data_key.reveal(), context
        return ticket

    def unwrap(self, wrapped, context):
        self._answer(wrapped.partition(b"/")[0].decode("ascii", "replace"))
        data_key, bound = self._inside.get(wrapped, (b"", None))
        if bound != context:
            raise Tampered("no such ticket in this context")
        return Secret(data_key)

    def check_value(self, kek_id):
        self._answer(kek_id)
        return hashlib.sha256(kek_id.encode()).digest()

    def _answer(self, kek_id):
        if self.away:
            raise KeyUnavailable(kek_id, "the key service does not answer")
        if kek_id not in self.ids:
            raise KeyUnavailable(kek_id)
        self.asked += 1


SERVICE = KeyService("kms-1")


# What BROKER_KEYRING names in tests.


def the_service():
    return SERVICE


def without_its_key():
    return KeyService("kms-2")


def no_service():
    return object()
