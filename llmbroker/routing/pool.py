"""What a scope can call: the registry's models joined with the keys that may pay for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmbroker.errors import NoLLMAvailableError
from llmbroker.models import ApiKey, KeySource, LLMConfig
from llmbroker.ports import KeyChain, Registry, ScopedRegistry, Secrets
from llmbroker.routing.candidates import NO_KEY, Candidate, CandidateCache


@dataclass(frozen=True, slots=True)
class Lineup:
    """All models of a scope, and the candidates among them that can be paid for."""

    configs: list[LLMConfig]
    candidates: list[Candidate]
    missing: frozenset[str]


class Pool:
    """Asks the ports anew for each call, so that a revoked key is never used again."""

    def __init__(self, registry: Registry, secrets: Secrets) -> None:
        self._registry = registry
        self._secrets = secrets
        self._cache = CandidateCache()
        self.disabled: set[str] = set()

    async def configs(self, scope: str | None) -> list[LLMConfig]:
        """All models that ``scope`` may call, whether there is a key for them or not."""
        if scope is not None and isinstance(self._registry, ScopedRegistry):
            return await self._registry.load_for(scope)
        return await self._registry.load()

    async def lineup(self, scope: str | None) -> Lineup:
        """What ``scope`` can call now."""
        configs = await self.configs(scope)
        by_ref: dict[str, Sequence[ApiKey]] = {}
        candidates: list[Candidate] = []
        for config in configs:
            ref = config.api_key_ref
            if ref not in by_ref:
                by_ref[ref] = await self.keys(ref, scope=scope)
            candidates += [self._cache.of(config, key) for key in by_ref[ref]]
        missing = frozenset(ref for ref, keys in by_ref.items() if not keys)
        return Lineup(configs, candidates, missing)

    async def usable(self, scope: str | None) -> list[Candidate]:
        """The candidates of ``scope`` that are not disabled.

        Raises NoLLMAvailableError where there can be none, and says why.
        """
        lineup = await self.lineup(scope)
        if not lineup.configs:
            raise NoLLMAvailableError("no model is configured", reason="empty_pool")
        if not lineup.candidates:
            refs = ", ".join(sorted(lineup.missing))
            raise NoLLMAvailableError(
                f"no key is stored for any model; one of these is needed: {refs}", reason="no_keys"
            )
        if not self.disabled:
            return lineup.candidates
        usable = [each for each in lineup.candidates if each.name not in self.disabled]
        if not usable:
            raise NoLLMAvailableError("every model is disabled", reason="all_disabled")
        return usable

    async def keys(self, ref: str, *, scope: str | None) -> Sequence[ApiKey]:
        """The keys for ``ref`` that ``scope`` may pay with, best first."""
        if not ref:
            return [NO_KEY]
        if isinstance(self._secrets, KeyChain):
            return await self._secrets.keys(ref, scope=scope)
        own = f"{scope}/{ref}"
        for stored, source in ((own, KeySource.OWN), (ref, KeySource.INSTALLATION)):
            if stored is own and scope is None:
                continue
            try:
                return [ApiKey(stored, await self._secrets.resolve(stored), source)]
            except KeyError:
                continue
        return []
