"""Ratings of other processes and of earlier days, read from the journal beside the calls."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from llmbroker.models import Rated
from llmbroker.ports import RatedStore
from llmbroker.quality import MAX_SCOPES, Quality
from llmbroker.routing.engine import Engine

logger = logging.getLogger(__name__)

REFRESH_AFTER = 60.0
"""Seconds after which a scope's ratings are read again."""

NEWEST = 1000
"""How many of a scope's newest calls are looked through for ratings."""


class Learner:
    """Keeps ``quality`` up with the journal. A call never waits for it."""

    def __init__(self, quality: Quality, engine: Engine) -> None:
        self._quality = quality
        self._engine = engine
        self._store = engine.store if isinstance(engine.store, RatedStore) else None
        self._read_at: OrderedDict[str | None, float] = OrderedDict()

    def observe(self, scope: str | None, rated: Rated) -> None:
        """Take a rating into account that was just given in this process."""
        self._quality.observe(scope, rated)

    def look(self, scope: str | None) -> None:
        """Have the ratings of ``scope`` read if that was long ago. Needs a running event loop."""
        now = self._engine.clock()
        if self._store is None or now - self._read_at.get(scope, -REFRESH_AFTER) < REFRESH_AFTER:
            return
        self._read_at[scope] = now
        self._read_at.move_to_end(scope)
        if len(self._read_at) > MAX_SCOPES:
            self._read_at.popitem(last=False)
        self._engine.track(asyncio.ensure_future(self._read(self._store, scope)))

    async def _read(self, store: RatedStore, scope: str | None) -> None:
        try:
            ratings = await store.ratings(limit=NEWEST, scope=scope)
        except Exception as error:  # noqa: BLE001 - an order learned is never worth a failed call
            logger.warning("ratings could not be read: %s", type(error).__name__)
        else:
            self._quality.replace(scope, ratings)
