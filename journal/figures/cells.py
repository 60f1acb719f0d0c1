"""Cells: the figures of one model, operation and key in one span of time, out of many calls.

Everything else is added up from cells: totals, each model, each day. A latency counts by its
bucket, whose bounds grow by an eighth of a doubling, so that percentiles can be told from
added-up figures too, within 5 %.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from llmbroker.models import USAGE_FIELDS

BUCKETS_PER_DOUBLING = 8
NAMES = ("llm_name", "model", "operation", "key_id", "key_source")
SUMS = (*USAGE_FIELDS, "cost_micros")

BUCKET = (
    "CASE WHEN status = 'ok' THEN"
    f" floor({BUCKETS_PER_DOUBLING} * ln(greatest(latency_ms, 1)) / ln(2))::int END"
)
CAUSE = (
    "CASE WHEN status NOT IN ('started', 'ok', 'superseded') THEN coalesce(error_class, status) END"
)
NAMED = ", ".join(f"coalesce({name}, '') AS {name}" for name in NAMES)
COLUMNS = ("status", "latency_ms", "error_class", "ts", *NAMES, *SUMS)

# In two steps: by bucket and cause, so that each is there once, then without them.
MEASURED = f"{NAMED}, {BUCKET} AS bucket, {CAUSE} AS cause, {', '.join(SUMS)}"
COUNTED = f"""
count(*) AS calls, count(cause) AS errors,
{", ".join(f"sum({name}) AS {name}" for name in SUMS)}
"""
ADDED = f"""
sum(calls) AS calls, sum(errors) AS errors,
{", ".join(f"sum({name}) AS {name}" for name in SUMS)},
coalesce(jsonb_object_agg(bucket, calls) FILTER (WHERE bucket IS NOT NULL), jsonb_build_object())
    AS latencies,
coalesce(jsonb_object_agg(cause, calls) FILTER (WHERE cause IS NOT NULL), jsonb_build_object())
    AS failures
"""


@dataclass(slots=True)
class Cell:
    """Counts and sums; a sum is None while no call says a figure."""

    calls: int = 0
    errors: int = 0
    sums: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(SUMS))
    latencies: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    names: tuple[str, ...] = ()
    span: datetime | None = None

    def add(self, other: "Cell") -> None:
        """Count ``other`` in."""
        self.calls += other.calls
        self.errors += other.errors
        for name, value in other.sums.items():
            if value is not None:
                self.sums[name] = (self.sums[name] or 0) + value
        self.latencies.update(other.latencies)
        self.failures.update(other.failures)

    def latency(self, share: float) -> float | None:
        """The milliseconds within which ``share`` of the answers came, to about 5 %."""
        wanted = share * self.latencies.total()
        seen = 0
        for bucket in sorted(self.latencies):
            seen += self.latencies[bucket]
            if seen >= wanted:
                return float(round(2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING)))
        return None


def cells_of(rows: Iterable[tuple[Any, ...]]) -> list[Cell]:
    """Rows of (span, NAMES …, calls, errors, SUMS …, latencies, failures) as cells."""
    first = 1 + len(NAMES)
    return [
        Cell(
            span=row[0],
            names=tuple(row[1:first]),
            calls=int(row[first]),
            errors=int(row[first + 1]),
            sums={name: _int(value) for name, value in zip(SUMS, row[first + 2 : -2], strict=True)},
            latencies=Counter({int(key): count for key, count in row[-2].items()}),
            failures=Counter(row[-1]),
        )
        for row in rows
    ]


def _int(value: Any) -> int | None:
    return None if value is None else int(value)
