"""Ports held in memory: for a bare script, and for tests, where they are read back."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from llmbroker.models import ApiKey, Call, CallStatus, KeySource, LLMConfig, Rated, check_score


class InMemoryRegistry:
    """A fixed list of models."""

    def __init__(self, configs: Iterable[LLMConfig] = ()) -> None:
        self._configs = list(configs)

    async def load(self) -> list[LLMConfig]:
        """All models given."""
        return list(self._configs)


class DictSecrets:
    """Keys from a mapping: ``{"REF": value}`` for everybody, ``{"scope/REF": value}`` for one."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __repr__(self) -> str:
        return f"DictSecrets({', '.join(sorted(self._values))})"

    async def resolve(self, ref: str) -> str:
        """The value stored under exactly ``ref``; KeyError if none."""
        return self._values[ref]

    async def keys(self, ref: str, *, scope: str | None) -> list[ApiKey]:
        """The scope's own key, else everybody's."""
        own = f"{scope}/{ref}"
        if scope is not None and own in self._values:
            return [ApiKey(own, self._values[own], KeySource.OWN)]
        if ref in self._values:
            return [ApiKey(ref, self._values[ref], KeySource.INSTALLATION)]
        return []

    async def refs(self, prefix: str = "") -> frozenset[str]:
        """The stored references that start with ``prefix``."""
        return frozenset(ref for ref in self._values if ref.startswith(prefix))


class InMemoryStore:
    """A journal that keeps the newest ``capacity`` attempts and can be read back."""

    def __init__(self, capacity: int = 100_000) -> None:
        self._calls: dict[str, Call] = {}
        self._order: deque[str] = deque()
        self._scores: dict[str, float] = {}
        self._capacity = capacity

    async def begin(self, call: Call) -> None:
        """Keep the intent of an attempt."""
        self._keep(call)

    async def record(self, call: Call) -> None:
        """Keep the outcome, in place of the intent of the same id."""
        self._keep(call)

    async def record_quality(self, call_id: str, score: float, *, scope: str | None = None) -> None:
        """Rate a call; KeyError if this scope has no such call."""
        check_score(score)
        call = self._calls[call_id]
        if scope is not None and call.scope != scope:
            raise KeyError(call_id)
        self._scores[call_id] = score

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
        """The newest ``limit`` attempts that match, newest first."""
        if limit < 1:
            raise ValueError(f"limit is at least 1, got {limit}")
        wanted = {
            "scope": scope,
            "operation": operation,
            "trace_id": trace_id,
            "id": call_id,
        }
        filters = {name: value for name, value in wanted.items() if value is not None}
        found: list[Call] = []
        for identity in reversed(self._order):
            call = self._calls[identity]
            if since is not None and (call.ts is None or call.ts < since):
                continue
            if all(getattr(call, name) == value for name, value in filters.items()):
                found.append(replace(call, score=self._scores.get(call.id)))
                if len(found) == limit:
                    break
        return found

    async def ratings(self, *, limit: int, scope: str | None) -> list[Rated]:
        """The scores among the newest ``limit`` calls of ``scope``; None is the installation."""
        mine = (
            call for each in reversed(self._order) if (call := self._calls[each]).scope == scope
        )
        return [
            Rated(call.operation, call.llm_name, self._scores[call.id])
            for call in itertools.islice(mine, limit)
            if call.id in self._scores
        ]

    def _keep(self, call: Call) -> None:
        known = self._calls.get(call.id)
        if known is not None and known.status is not CallStatus.STARTED:
            return  # an outcome is final
        if known is None:
            self._order.append(call.id)
            if len(self._order) > self._capacity:
                oldest = self._order.popleft()
                del self._calls[oldest]
                self._scores.pop(oldest, None)
        self._calls[call.id] = call
