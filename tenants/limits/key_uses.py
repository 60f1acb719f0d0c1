"""When keys were last used, without a write per call: each key once per period and process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.utils import timezone

from tenants.context import all_tenants
from tenants.outage import Memory
from tenants.services.keys import note_use

PERIOD = timedelta(minutes=5)
REMEMBERED = 100_000


class KeyUses:
    """Notes the first use of a stored key in each period."""

    def __init__(self, memory: Memory, clock: Callable[[], datetime] = timezone.now) -> None:
        self._memory = memory
        self._clock = clock
        self._noted: dict[UUID, datetime] = {}

    async def note(self, key_id: str) -> None:
        """The key of that id is about to be used; one that is not stored here is none of ours."""
        try:
            identity = UUID(key_id)
        except ValueError:
            return
        now = self._clock()
        noted = self._noted.get(identity)
        if noted is not None and now - noted < PERIOD:
            return
        if len(self._noted) >= REMEMBERED:
            self._noted.clear()
        self._noted[identity] = now
        await self._memory.attempt(partial(_write, identity, now))


def _write(key_id: UUID, now: datetime) -> None:
    with all_tenants("when keys were used", routine=True):
        note_use(key_ids=[key_id], now=now, unless_since=now - PERIOD)
