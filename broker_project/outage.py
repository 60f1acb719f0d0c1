"""While the database is away, scopes in use go on with the models and keys they had last.

Nothing is remembered in place of asking: with the database there, every call asks it, so a key
that was replaced or deleted is out of use at once. Only a failed question is answered from
memory, and only for as long as the journal's spool lets calls go on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

from django.db import InterfaceError, OperationalError

from llmbroker.errors import KeyUnavailableError
from llmbroker.models import ApiKey, LLMConfig
from llmbroker.ports import KeyRing, KeyWatch, ScopedRegistry

REMEMBERED = 10_000
PAUSE = 1.0
"""Seconds for which nobody asks a database again that has just failed: asking takes long then."""


class Memory:
    """The last answers, each good for ``seconds`` after it was given."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._answers: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._asked_again_at = 0.0

    async def ask(self, question: Hashable, ask: Callable[[], Awaitable[Any]]) -> Any:
        """The answer of ``ask``; the last one if the database is away and there is one."""
        if self._clock() < self._asked_again_at:
            given = self._recall(question)
            if given is not None:
                return given[1]
        try:
            answer = await ask()
        except (OperationalError, InterfaceError):
            self._asked_again_at = self._clock() + PAUSE
            given = self._recall(question)
            if given is None:
                raise
            return given[1]
        self._asked_again_at = 0.0
        self._remember(question, answer)
        return answer

    def _recall(self, question: Hashable) -> tuple[float, Any] | None:
        given = self._answers.get(question)
        if given is None or self._clock() - given[0] > self._seconds:
            return None
        return given

    def _remember(self, question: Hashable, answer: Any) -> None:
        self._answers[question] = (self._clock(), answer)
        self._answers.move_to_end(question)
        if len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)


class RememberedRegistry:
    """A ScopedRegistry that survives its database for a while."""

    def __init__(self, registry: ScopedRegistry, memory: Memory) -> None:
        self._registry = registry
        self._memory = memory

    async def load(self) -> list[LLMConfig]:
        """All common models."""
        return await self._registry.load()

    async def load_for(self, scope: str) -> list[LLMConfig]:
        """The models of a scope, or those it had last."""
        loaded = await self._memory.ask(("load", scope), lambda: self._registry.load_for(scope))
        return list(loaded)


class RememberedSecrets:
    """A KeyRing that survives its database for a while. It is no new place for keys at rest."""

    def __init__(self, secrets: KeyRing, memory: Memory) -> None:
        self._secrets = secrets
        self._memory = memory

    async def resolve(self, ref: str) -> str:
        """See Secrets."""
        value: str = await self._memory.ask(("resolve", ref), lambda: self._secrets.resolve(ref))
        return value

    async def keys(self, ref: str, *, scope: str | None) -> Sequence[ApiKey]:
        """See KeyChain."""
        found: Sequence[ApiKey] = await self._memory.ask(
            ("keys", ref, scope), lambda: self._secrets.keys(ref, scope=scope)
        )
        return found

    async def keyring(
        self, refs: Collection[str], *, scope: str | None
    ) -> Mapping[str, Sequence[ApiKey] | KeyUnavailableError]:
        """See KeyRing."""
        found: Mapping[str, Sequence[ApiKey] | KeyUnavailableError] = await self._memory.ask(
            ("keyring", frozenset(refs), scope), lambda: self._secrets.keyring(refs, scope=scope)
        )
        return found

    async def key_refused(self, key: ApiKey, *, detail: str) -> None:
        """See KeyWatch. While the database is away the key cools by its health alone."""
        if isinstance(self._secrets, KeyWatch):
            try:
                await self._secrets.key_refused(key, detail=detail)
            except (OperationalError, InterfaceError):
                return
