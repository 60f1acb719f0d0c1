"""What a scope can call: the registry's models joined with the keys that may pay for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from llmbroker.errors import KeyUnavailableError, NoLLMAvailableError
from llmbroker.models import ApiKey, KeySource, LLMConfig
from llmbroker.ports import KeyChain, KeyRing, Registry, ScopedRegistry, Secrets
from llmbroker.routing.candidates import NO_KEY, Candidate

Keyring = Mapping[str, Sequence[ApiKey] | KeyUnavailableError]

MAX_LINEUPS = 4096
"""Scopes whose lineup is kept; beyond it all are made anew."""

KEPT_FOR = 60.0
"""Seconds that a lineup is kept, and with it the keys in it."""


@dataclass(frozen=True, slots=True)
class Lineup:
    """All models of a scope, and the candidates among them that can be paid for."""

    configs: Sequence[LLMConfig]
    candidates: Sequence[Candidate]
    missing: frozenset[str]
    unavailable: tuple[KeyUnavailableError, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A lineup, and copies of what the ports gave for it: a host may change its own in place.

    ``since`` is by the monotonic clock.
    """

    since: float
    lineup: Lineup
    configs: list[LLMConfig]
    keys: dict[str, Sequence[ApiKey]] = field(repr=False)

    def is_of(self, configs: list[LLMConfig], keyring: Keyring) -> bool:
        """Whether the ports still give the same."""
        return self.configs == configs and self.keys == keyring


class Pool:
    """Asks the ports anew for each call, so that a revoked key is never used again.

    What was made of the same answers is kept for a moment, since making it costs more than asking.
    """

    def __init__(
        self,
        registry: Registry,
        secrets: Secrets,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._secrets = secrets
        # Looked at once: isinstance with a protocol costs as much as the rest of a lineup.
        self._chain = secrets if isinstance(secrets, KeyChain) else None
        self._ring = secrets if isinstance(secrets, KeyRing) else None
        self._scoped = registry if isinstance(registry, ScopedRegistry) else None
        self._clock = clock
        self._kept: dict[str | None, _Kept] = {}  # the oldest first
        self._sweep: asyncio.TimerHandle | None = None
        self._swept_by: asyncio.AbstractEventLoop | None = None
        self.disabled: set[str] = set()

    async def configs(self, scope: str | None) -> list[LLMConfig]:
        """All models that ``scope`` may call, whether there is a key for them or not."""
        if scope is not None and self._scoped is not None:
            return await self._scoped.load_for(scope)
        return await self._registry.load()

    async def lineup(self, scope: str | None) -> Lineup:
        """What ``scope`` can call now."""
        configs = await self.configs(scope)
        refs = dict.fromkeys(config.api_key_ref for config in configs)
        keyring = await self._keyring(refs, scope)
        self._forget_old()
        kept = self._kept.get(scope)
        if kept is not None and kept.is_of(configs, keyring):
            return kept.lineup
        lineup = self._lineup(configs, keyring)
        self._keep(scope, lineup, configs, keyring)
        return lineup

    async def usable(self, scope: str | None) -> Sequence[Candidate]:
        """The candidates of ``scope`` that are not disabled.

        Raises NoLLMAvailableError where there can be none, and says why.
        """
        lineup = await self.lineup(scope)
        if not lineup.configs:
            raise NoLLMAvailableError("no model is configured", reason="empty_pool")
        if not lineup.candidates and lineup.unavailable:
            raise lineup.unavailable[0]
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
        if self._chain is not None:
            return await self._chain.keys(ref, scope=scope)
        own = f"{scope}/{ref}"
        for stored, source in ((own, KeySource.OWN), (ref, KeySource.INSTALLATION)):
            if stored is own and scope is None:
                continue
            try:
                return [ApiKey(stored, await self._secrets.resolve(stored), source)]
            except KeyError:
                continue
        return []

    def _lineup(self, configs: Sequence[LLMConfig], keyring: Keyring) -> Lineup:
        candidates: list[Candidate] = []
        for config in configs:
            keys = keyring.get(config.api_key_ref, ())
            if not isinstance(keys, KeyUnavailableError):
                candidates += [Candidate.of(config, key) for key in keys]
        refs = {config.api_key_ref for config in configs}
        missing = frozenset(ref for ref in refs if not keyring.get(ref))
        broken = tuple(each for each in keyring.values() if isinstance(each, KeyUnavailableError))
        return Lineup(tuple(configs), tuple(candidates), missing, broken)

    def _keep(
        self, scope: str | None, lineup: Lineup, configs: list[LLMConfig], keyring: Keyring
    ) -> None:
        """Keep ``lineup``, unless something failed: its errors hold on to whatever they saw."""
        self._kept.pop(scope, None)
        if lineup.unavailable:
            return
        if len(self._kept) >= MAX_LINEUPS:
            self._kept.clear()
        keys = {
            ref: keys[:]
            for ref, keys in keyring.items()
            if not isinstance(keys, KeyUnavailableError)
        }
        self._kept[scope] = _Kept(self._clock(), lineup, configs[:], keys)
        self._sweep_later()

    def _forget_old(self) -> None:
        """Let go of the keys that have been kept for long enough."""
        horizon = self._clock() - KEPT_FOR
        while self._kept:
            scope, oldest = next(iter(self._kept.items()))
            if oldest.since > horizon:
                return
            del self._kept[scope]

    def _sweep_later(self) -> None:
        """Forget also where no other call comes to do so."""
        loop = asyncio.get_running_loop()
        if self._sweep is None or self._swept_by is not loop:
            self._sweep, self._swept_by = loop.call_later(KEPT_FOR, self._do_sweep), loop

    def _do_sweep(self) -> None:
        self._sweep = None
        self._forget_old()
        if self._kept:
            self._sweep_later()

    async def _keyring(self, refs: Collection[str], scope: str | None) -> Keyring:
        if self._ring is not None:
            asked = [ref for ref in refs if ref]
            found = await self._ring.keyring(asked, scope=scope) if asked else {}
            return {**found, "": [NO_KEY]}
        by_ref: dict[str, Sequence[ApiKey] | KeyUnavailableError] = {}
        for ref in refs:
            try:
                by_ref[ref] = await self.keys(ref, scope=scope)
            except KeyUnavailableError as error:
                by_ref[ref] = error
        return by_ref
