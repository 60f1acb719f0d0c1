"""Keeps the leases of a worker alive, however long a model takes to answer.

A thread of its own: an event loop that some tool holds up must not cost a thousand leases.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from django.db import Error

from agents.services.leases import Lease, extend
from agents.services.ledger import Ledger

EVERY = 2.0
"""Seconds between two heartbeats: a lease outlives two that fail."""

log = logging.getLogger(__name__)


class Heartbeat:
    """Tells ``cancelled`` and ``lost`` of leases, in its own thread, as soon as it knows."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        cancelled: Callable[[Lease], None],
        lost: Callable[[Lease], None],
        every: float = EVERY,
    ) -> None:
        self._ledger = ledger
        self._cancelled = cancelled
        self._lost = lost
        self._every = every
        self._leases: set[Lease] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keeping(self, lease: Lease) -> Iterator[None]:
        """Renew ``lease`` for as long as the block runs."""
        with self._lock:
            self._leases.add(lease)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._leases.discard(lease)

    def beat(self) -> None:
        """Renew all leases now."""
        with self._lock:
            leases = frozenset(self._leases)
        standing = self._ledger.call(partial(extend, leases)) if leases else None
        with self._lock:
            still = leases & self._leases
        if standing is not None:
            for lease in standing.cancelling & still:
                self._cancelled(lease)
            for lease in still - standing.held:
                self._lost(lease)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            try:
                self.beat()
            except Error:
                log.warning("a heartbeat did not reach the database", exc_info=True)
