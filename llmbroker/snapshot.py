"""What a pool looks like now, and what its calls came to: read-only views for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from llmbroker.catalog import key_help
from llmbroker.models import Call, CallStatus, LLMConfig, Usage
from llmbroker.routing.candidates import Candidate
from llmbroker.routing.health import Cooldown
from llmbroker.routing.pool import Lineup


@dataclass(frozen=True, slots=True)
class MissingKey:
    """A key that would make models usable, and where to get it."""

    api_key_ref: str
    help: str | None
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelState:
    """One model: ``cooldown_until`` is set while none of its keys can be used."""

    config: LLMConfig
    disabled: bool
    has_key: bool
    cooldown_until: datetime | None

    @property
    def usable(self) -> bool:
        """Whether a call could go there now."""
        return self.has_key and not self.disabled and self.cooldown_until is None


@dataclass(frozen=True, slots=True)
class Snapshot(Mapping[str, ModelState]):
    """The pool by model name."""

    models: Mapping[str, ModelState]
    missing_keys: tuple[MissingKey, ...]

    @property
    def usable(self) -> tuple[str, ...]:
        """The models that a call could go to now."""
        return tuple(name for name, state in self.models.items() if state.usable)

    @property
    def degraded(self) -> bool:
        """Whether fewer than two models are usable: nothing to fail over to."""
        return len(self.usable) < 2

    def __getitem__(self, name: str) -> ModelState:
        return self.models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)


def snapshot_of(
    lineup: Lineup, disabled: Iterable[str], known: Mapping[str, Cooldown], *, now: float
) -> Snapshot:
    """The snapshot of ``lineup`` at ``now`` (seconds since the epoch)."""
    off = set(disabled)
    states = {}
    for config in lineup.configs:
        mine = [each for each in lineup.candidates if each.name == config.name]
        away = min((_away_until(each, known) for each in mine), default=0.0)
        until = datetime.fromtimestamp(away, UTC) if away > now else None
        states[config.name] = ModelState(config, config.name in off, bool(mine), until)
    missing = tuple(
        MissingKey(
            ref,
            key_help(ref),
            tuple(each.name for each in lineup.configs if each.api_key_ref == ref),
        )
        for ref in sorted(lineup.missing)
    )
    return Snapshot(states, missing)


def _away_until(candidate: Candidate, known: Mapping[str, Cooldown]) -> float:
    return max((known[each].until for each in candidate.ids.values() if each in known), default=0.0)


@dataclass(frozen=True, slots=True)
class ModelStats:
    """The attempts on one model over a window."""

    total: int = 0
    by_status: Mapping[CallStatus, int] = field(default_factory=dict)
    usage: Usage | None = None
    mean_latency_ms: float | None = None
    mean_score: float | None = None
    last_at: datetime | None = None


def stats_of(calls: Iterable[Call]) -> dict[str, ModelStats]:
    """Statistics per model of ``calls``."""
    grouped: dict[str, list[Call]] = {}
    for call in calls:
        grouped.setdefault(call.llm_name, []).append(call)
    return {name: _stats(rows) for name, rows in grouped.items()}


def _stats(calls: list[Call]) -> ModelStats:
    by_status: dict[CallStatus, int] = {}
    usage: Usage | None = None
    for call in calls:
        if call.status is not None:
            by_status[call.status] = by_status.get(call.status, 0) + 1
        if call.usage is not None:
            usage = call.usage if usage is None else usage + call.usage
    return ModelStats(
        total=len(calls),
        by_status=by_status,
        usage=usage,
        mean_latency_ms=_mean(call.latency_ms for call in calls if call.status is CallStatus.OK),
        mean_score=_mean(call.score for call in calls),
        last_at=max((call.ts for call in calls if call.ts is not None), default=None),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
