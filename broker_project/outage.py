"""The engine's ports that survive their database for a while: scopes in use go on with the models
and keys they had last (tenants/outage.py)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from llmbroker.errors import KeyUnavailableError
from llmbroker.models import ApiKey, LLMConfig
from llmbroker.ports import KeyRing, KeyWatch, ScopedRegistry
from tenants.outage import Memory, is_away


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
            except Exception as error:
                if not is_away(error):
                    raise
