"""What calls said and were told: kept only where asked for, sealed with the tenant's key."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

import orjson

from journal.models import Payload
from journal.selectors import policy_of
from llmbroker.text import storable_json
from tenants import vault
from tenants.context import scope_active
from tenants.database import in_thread
from tenants.encryption import KeyUnavailable, Place, Secret, Tampered, WrappedKey
from tenants.errors import NotFound, SecretUnavailable
from tenants.models import DataKey, Scope
from tenants.outage import process_memory
from tenants.selectors import reach_of, scope_of
from tenants.services.data_keys import data_key_for_sealing

COLUMN = "journal_payload.sealed"
REMEMBERED_SECONDS = 30.0
REMEMBERED_SCOPES = 10_000


class Rules:
    """Whether scopes keep payloads. Asked with every call, so remembered for half a minute."""

    def __init__(self) -> None:
        self._known: dict[UUID, tuple[float, bool]] = {}

    async def keeps(self, scope_id: UUID) -> bool:
        """Whether the scope's tenant keeps what its calls say."""
        known = self._known.get(scope_id)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        ask = partial(in_thread, _keeps, scope_id)
        keeps: bool = await process_memory().ask(("payloads", scope_id), ask)
        if len(self._known) >= REMEMBERED_SCOPES:
            self._known.clear()
        self._known[scope_id] = (time.monotonic() + REMEMBERED_SECONDS, keeps)
        return keeps

    def forget(self) -> None:
        """Ask anew, for tests: elsewhere a changed rule holds when what is remembered is old."""
        self._known.clear()


payload_rules = Rules()


def keep_payload(*, scope_id: UUID, call_id: UUID, said: Mapping[str, Any]) -> None:
    """Seal ``said`` for its call, once."""
    scope = Scope.objects.select_related("tenant").get(id=scope_id)
    key = data_key_for_sealing(tenant=scope.tenant)
    text = Secret(orjson.dumps(storable_json(said)).decode())
    sealed = vault.data_keys().seal(vault.wrapped(key), Place(COLUMN, call_id), text)
    row = Payload(
        id=call_id, scope_id=scope_id, tenant_id=key.tenant_id, data_key_id=key.id, sealed=sealed
    )
    Payload.objects.bulk_create([row], ignore_conflicts=True)


def open_payload(payload: Payload) -> dict[str, Any]:
    """What the call said and was told. Raises SecretUnavailable."""
    key = DataKey.objects.filter(id=payload.data_key_id, tenant_id=payload.tenant_id).first()
    try:
        text = _open(payload, None if key is None else vault.wrapped(key))
    except (KeyUnavailable, Tampered):
        raise SecretUnavailable(f"The payload of call {payload.id} cannot be opened.") from None
    said: dict[str, Any] = orjson.loads(text)
    return said


def _open(payload: Payload, key: WrappedKey | None) -> str:
    if key is None:
        raise Tampered("its data key is gone")
    return vault.data_keys().open(key, Place(COLUMN, payload.id), bytes(payload.sealed)).reveal()


def _keeps(scope_id: UUID) -> bool:
    try:
        reach = reach_of(scope_of(scope_id))
    except NotFound:
        return False
    with scope_active(reach):
        return policy_of(reach.tenant_id).keep_payloads
