"""A keyring that spares a remote key service: what it unwrapped is kept for a short while."""

import threading
import time
from collections.abc import Callable

from tenants.encryption.keyring import Keyring
from tenants.encryption.secret import Secret

KEPT_SECONDS = 300.0
"""How long an unwrapped data key stays in memory, and so works on after its key was withdrawn."""

KEPT_AT_MOST = 10_000


class CachedKeyring:
    """Another keyring, asked once in ``seconds`` for each data key."""

    def __init__(
        self,
        keyring: Keyring,
        *,
        seconds: float = KEPT_SECONDS,
        size: int = KEPT_AT_MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keyring = keyring
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._kept: dict[tuple[bytes, bytes], tuple[Secret[bytes], float]] = {}
        self._lock = threading.Lock()

    @property
    def active(self) -> str:
        """See Keyring."""
        return self._keyring.active

    @property
    def ids(self) -> frozenset[str]:
        """See Keyring."""
        return self._keyring.ids

    def wrap(self, data_key: Secret[bytes], context: bytes) -> bytes:
        """See Keyring."""
        return self._keyring.wrap(data_key, context)

    def unwrap(self, wrapped: bytes, context: bytes) -> Secret[bytes]:
        """See Keyring. A failure is not kept: the service may be back with the next call."""
        place, now = (wrapped, context), self._clock()
        with self._lock:
            data_key, until = self._kept.get(place, (None, 0.0))
        if data_key is not None and now < until:
            return data_key
        data_key = self._keyring.unwrap(wrapped, context)
        with self._lock:
            self._forget(now)
            self._kept[place] = data_key, now + self._seconds
        return data_key

    def check_value(self, kek_id: str) -> bytes:
        """See Keyring."""
        return self._keyring.check_value(kek_id)

    def _forget(self, now: float) -> None:
        """Drop what is over, oldest first; and one more where it is full."""
        while self._kept:
            oldest = next(iter(self._kept))
            if now < self._kept[oldest][1] and len(self._kept) < self._size:
                return
            del self._kept[oldest]
