"""What the engine needs from its host. Every method is async; nothing here knows a database.

The first three protocols are the required ones and keep the seed library's methods. The
others are optional: an implementation that has them is detected with ``isinstance``, one
that has not still works.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from llmbroker.errors import KeyUnavailableError
from llmbroker.models import ApiKey, Call, LLMConfig, Rated
from llmbroker.outgoing import Admission, Outgoing, Spent


@runtime_checkable
class Registry(Protocol):
    """Which models there are."""

    async def load(self) -> list[LLMConfig]:
        """All configured models."""
        ...


@runtime_checkable
class ScopedRegistry(Registry, Protocol):
    """Optional: a scope may have models of its own beside the common ones."""

    async def load_for(self, scope: str) -> list[LLMConfig]:
        """All models that ``scope`` may call, the common ones included."""
        ...


@runtime_checkable
class Secrets(Protocol):
    """Whose keys there are."""

    async def resolve(self, ref: str) -> str:
        """The key stored under ``ref`` (a scope's own: ``"<scope>/<REF>"``); KeyError if none."""
        ...


@runtime_checkable
class KeyChain(Secrets, Protocol):
    """Optional: several keys for one reference, each with whose it is."""

    async def keys(self, ref: str, *, scope: str | None) -> Sequence[ApiKey]:
        """The keys ``scope`` may pay with for ``ref``, best first; empty if none.

        Raises KeyUnavailableError where there are keys and none can be read.
        """
        ...


@runtime_checkable
class KeyRing(KeyChain, Protocol):
    """Optional: the keys for many references at once, for a store that is asked over a wire."""

    async def keyring(
        self, refs: Collection[str], *, scope: str | None
    ) -> Mapping[str, Sequence[ApiKey] | KeyUnavailableError]:
        """What ``keys`` gives or raises for each of ``refs``; one left out has no key."""
        ...


@runtime_checkable
class KeyWatch(Protocol):
    """Optional, beside Secrets: whoever holds the keys is told that a provider refused one."""

    async def key_refused(self, key: ApiKey, *, detail: str) -> None:
        """Note that ``key`` was refused; until it is replaced, ``keys`` no longer gives it."""
        ...


@runtime_checkable
class Store(Protocol):
    """The journal."""

    async def record(self, call: Call) -> None:
        """Write the outcome of one attempt, once; replaces an intent of the same id."""
        ...

    async def record_quality(self, call_id: str, score: float, *, scope: str | None = None) -> None:
        """Append a rating of ``call_id``; the newest counts."""
        ...

    async def calls(
        self,
        *,
        limit: int,
        scope: str | None = None,
        since: datetime | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        call_id: str | None = None,
    ) -> list[Call]:
        """The newest ``limit`` attempts that match every filter given, newest first."""
        ...


@runtime_checkable
class RatedStore(Store, Protocol):
    """Optional: ratings can be read back, so that a new process need not learn anew."""

    async def ratings(self, *, limit: int, scope: str | None) -> list[Rated]:
        """The newest rating of each rated call among the newest ``limit`` calls of ``scope``."""
        ...


@runtime_checkable
class PayloadStore(Store, Protocol):
    """Optional: what was said may be kept too, where whoever it belongs to wants that."""

    async def record_payload(
        self, call: Call, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]
    ) -> None:
        """Keep the messages and the answer of an answered call, or decide not to. Never raises."""
        ...


@runtime_checkable
class IntentStore(Store, Protocol):
    """Optional: the attempt is durable before the request leaves."""

    async def begin(self, call: Call) -> None:
        """Write the intent of an attempt (status ``STARTED``); returns when it is durable."""
        ...


@runtime_checkable
class Gate(Protocol):
    """Optional: whoever pays may limit what is sent. Every request to a provider passes it."""

    async def admit(self, outgoing: Outgoing) -> Admission | None:
        """Reserve what the request may cost at its worst, before it leaves; None: no limits.

        Raises LimitExceededError.
        """
        ...

    async def settle(self, admission: Admission, spent: Spent) -> None:
        """Turn the reservation into what the request came to, once it has ended."""
        ...

    async def aclose(self) -> None:
        """Close connections, if it has any."""
        ...
