"""Keeps the leases of this process alive, however long a model takes to answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connections

from agents.services.leases import Lease, extend
from tenants.context import all_tenants

EVERY = 4.0
"""Seconds between two heartbeats: a lease outlives two that fail."""

log = logging.getLogger(__name__)


class Heartbeat:
    """One thread for all runs that this process works on; it ends when there are none."""

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._leases: set[Lease] = set()
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keeping(self, lease: Lease) -> Iterator[None]:
        """Renew ``lease`` for as long as the block runs."""
        with self._lock:
            self._leases.add(lease)
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._leases.discard(lease)
                if not self._leases:
                    self._idle.set()

    def beat(self) -> None:
        """Renew all leases now."""
        with self._lock:
            leases = tuple(self._leases)
        with all_tenants("heartbeat of runs", routine=True):
            extend(leases)

    def _run(self) -> None:
        while self._goes_on():
            if self._idle.wait(self._every):
                continue
            try:
                self.beat()
            except Error:
                log.warning("a heartbeat did not reach the database", exc_info=True)
            finally:
                connections.close_all()  # to the pool: between two beats there is nothing to do

    def _goes_on(self) -> bool:
        with self._lock:
            if not self._leases:
                self._thread = None
            return self._thread is not None


heartbeat = Heartbeat()
"""The one of this process. It begins with the first run, so after any fork."""
