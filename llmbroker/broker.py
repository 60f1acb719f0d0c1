"""AsyncBroker: the pool, its ports, and the callers that share them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from llmbroker.addresses import AddressPolicy
from llmbroker.caller import AsyncCaller, Parts
from llmbroker.catalog import alias as catalog_alias
from llmbroker.catalog import load_models
from llmbroker.catalog import pool as catalog_pool
from llmbroker.environment import EnvironmentSecrets, environment_models
from llmbroker.learning import Learner
from llmbroker.memory import DictSecrets, InMemoryRegistry, InMemoryStore
from llmbroker.models import LLMConfig
from llmbroker.ports import Gate, Registry, Secrets, Store
from llmbroker.prices import Pricing
from llmbroker.quality import Quality
from llmbroker.routing.engine import Engine
from llmbroker.routing.health import Health, MemoryHealth
from llmbroker.routing.pool import Pool
from llmbroker.routing.ranking import Ranking
from llmbroker.routing.router import Router
from llmbroker.routing.slots import Slots
from llmbroker.transport import Timeouts, Transport

HEDGE_AFTER = 10.0
"""Seconds without an answer after which a second model is started beside the first."""


class AsyncBroker(AsyncCaller):
    """Routes calls over a pool of models. Use one per event loop, and close it there."""

    def __init__(
        self,
        registry: Registry | str | Path | None = None,
        *,
        secrets: Secrets | Mapping[str, str] | None = None,
        store: Store | None = None,
        optimize: bool = True,
        sync: str | None = None,  # noqa: ARG002 - the seed library's name; nothing is fetched
        home: str | Path | None = None,
        direct: Sequence[str | LLMConfig] = (),
        health: Health | None = None,
        timeouts: Timeouts | None = None,
        hedge_after: float | None = HEDGE_AFTER,
        policy: AddressPolicy | None = None,
        gate: Gate | None = None,
        clock: Callable[[], float] = time.time,
        pricing: Pricing | None = None,
    ) -> None:
        """Everything has a default: the bundled pool, keys from the environment and from
        ``home``/.env, a journal in memory.

        ``registry`` may be the path of a TOML model list. ``optimize`` lets ratings change
        the order. ``direct`` declares models for ``direct()``: aliases of the catalog, or
        configurations. ``hedge_after`` is in seconds; None never starts a second model.
        ``policy`` says what models may be reached whose address others gave (``guarded``).
        ``gate`` is asked before each request leaves. ``clock`` gives the seconds since the
        epoch. ``pricing`` says what a call cost, for the journal (``llmbroker.prices.price_of``,
        which imports a price list). ``sync`` is accepted for compatibility: model lists are never
        fetched unasked.
        """
        where = Path(home) if home is not None else None
        keys = _secrets(secrets, where)
        pool = Pool(_registry(registry, where), keys)
        quality = Quality()
        engine = Engine(
            transport=Transport(timeouts, policy=policy),
            store=store if store is not None else InMemoryStore(),
            health=health or MemoryHealth(clock),
            slots=Slots(),
            secrets=keys,
            clock=clock,
            gate=gate,
            pricing=pricing,
        )
        router = Router(
            pool,
            Ranking(quality if optimize else None, engine.latency_of),
            engine,
            hedge_after=hedge_after,
        )
        declared = tuple(catalog_alias(each) if isinstance(each, str) else each for each in direct)
        super().__init__(Parts(pool, router, engine, Learner(quality, engine), declared), None)

    def for_scope(self, scope: str) -> AsyncCaller:
        """A caller that pays with the keys of ``scope`` and stamps its rows with it.

        Raises ValueError for an empty one.
        """
        if not isinstance(scope, str) or not scope:
            raise ValueError(f"a scope is a non-empty text, got {scope!r}")
        return AsyncCaller(self._parts, scope)

    def disable_llm(self, name: str) -> None:
        """Take a model out of the pool until ``enable_llm``."""
        self._parts.pool.disabled.add(name)

    def enable_llm(self, name: str) -> None:
        """Put a disabled model back."""
        self._parts.pool.disabled.discard(name)

    async def aclose(self) -> None:
        """Finish what is under way, start nothing more, and close all connections."""
        engine = self._parts.engine
        engine.closing = True
        try:
            await engine.drain()
            await engine.health.aclose()
            await engine.transport.aclose()
            if engine.gate is not None:
                await engine.gate.aclose()
        finally:
            engine.closing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _registry(registry: Registry | str | Path | None, home: Path | None) -> Registry:
    if isinstance(registry, str | Path):
        return InMemoryRegistry(load_models(registry))
    if registry is not None:
        return registry
    return InMemoryRegistry([*environment_models(home), *catalog_pool()])


def _secrets(secrets: Secrets | Mapping[str, str] | None, home: Path | None) -> Secrets:
    if secrets is None:
        return EnvironmentSecrets(home)
    return DictSecrets(secrets) if isinstance(secrets, Mapping) else secrets
