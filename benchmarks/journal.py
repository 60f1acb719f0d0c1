"""The journal's writes: group commit beside one insert and one update per row.

    DATABASE_URL=… python benchmarks/journal.py [--waiters 300] [--calls 3000] [--rounds 3]

Each waiter does what a call does: an intent, then its outcome, each awaited until it is
durable. Rows go to the database named (migrated, please) under a tenant that is removed again.
The two ways alternate, and the middle round counts.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import django
from uuid_utils import uuid7

sys.path.insert(0, str(Path(__file__).parents[1]))

from llmbroker.models import Call, CallStatus, Usage

Step = Callable[[Call], Awaitable[None]]


@dataclass(frozen=True)
class Way:
    """How rows are written."""

    name: str
    begin: Step
    record: Step


@dataclass(frozen=True)
class Load:
    """So many calls of a scope, by so many at a time."""

    scope: str
    waiters: int
    calls: int


@dataclass(frozen=True)
class Figures:
    """Of one round. A call writes two rows: its intent and its outcome."""

    rows_per_second: float
    cpu_us_per_row: float
    call_ms_p50: float
    call_ms_p95: float


def group_commit() -> Way:
    """What the product does."""
    from journal.adapters import DjangoStore

    store = DjangoStore()
    return Way("group commit", store.begin, store.record)


def row_by_row(threads: ThreadPoolExecutor) -> Way:
    """The ORM from a few threads with connections that stay open, one commit per statement."""
    from journal.models import Call as Row
    from journal.rows import row_of
    from tenants.models import Scope

    def begin(call: Call) -> None:
        row = row_of(call)
        row.tenant_id = Scope.objects.get(id=row.scope_id).tenant_id
        row.save(force_insert=True)

    def record(call: Call) -> None:
        row = row_of(call)
        changed = {"status": row.status, "latency_ms": row.latency_ms, "model": row.model}
        Row.objects.filter(id=row.id, scope_id=row.scope_id, status="started").update(**changed)

    async def in_thread(work: Callable[[Call], None], call: Call) -> None:
        # The thread is within the walls, and through them, as far as this task is.
        run = copy_context().run
        await asyncio.get_running_loop().run_in_executor(threads, run, work, call)

    return Way(
        "a commit per row",
        lambda call: in_thread(begin, call),
        lambda call: in_thread(record, call),
    )


def intent(scope: str) -> Call:
    """A call as the engine begins it."""
    return Call(
        id=str(uuid7()),
        llm_name="bench/small",
        operation="chat",
        trace_id=str(uuid7()),
        status=CallStatus.STARTED,
        ts=datetime.now(UTC),
        scope=scope,
        base_url="http://127.0.0.1:9/v1",
        model="small",
    )


async def measure(way: Way, load: Load) -> Figures:
    """One round of one way."""
    took: list[float] = []
    left = iter(range(load.calls))

    async def wait() -> None:
        for _ in left:
            call = intent(load.scope)
            started = time.perf_counter()
            await way.begin(call)
            outcome = replace(call, status=CallStatus.OK, latency_ms=5, usage=Usage(9, 9, 18))
            await way.record(outcome)
            took.append(time.perf_counter() - started)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(wait() for _ in range(load.waiters)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rows = 2 * load.calls
    cut = statistics.quantiles(took, n=20)
    return Figures(rows / wall, 1e6 * cpu / rows, 1000 * statistics.median(took), 1000 * cut[18])


def main() -> None:
    """Measure both ways, crowded and alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--waiters", type=int, default=300)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    django.setup()
    from tenants.context import all_tenants

    with all_tenants("a benchmark"):
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Both ways, for a tenant that is removed again."""
    from journal.models import Call as Row
    from tenants.models import Scope, Tenant

    tenant = Tenant.objects.create(slug=f"bench-{uuid4().hex[:8]}", name="Benchmark")
    scope = Scope.objects.create(tenant=tenant, kind=Scope.Kind.SHARED, name="Shared")
    try:
        with ThreadPoolExecutor(8) as threads:
            ways = [group_commit(), row_by_row(threads)]
            for waiters, calls in ((1, min(300, options.calls)), (options.waiters, options.calls)):
                load = Load(str(scope.id), waiters, calls)
                report(f"{waiters} at once", middle_rounds(ways, load, options.rounds))
    finally:
        Row.objects.filter(tenant_id=tenant.id).delete()
        scope.delete()
        tenant.delete()


def middle_rounds(ways: list[Way], load: Load, rounds: int) -> dict[str, Figures]:
    """The middle round of each way."""
    found: dict[str, list[Figures]] = {way.name: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            found[way.name].append(asyncio.run(measure(way, load)))
    for figures in found.values():
        figures.sort(key=lambda one: one.rows_per_second)
    return {name: figures[len(figures) // 2] for name, figures in found.items()}


def report(name: str, found: dict[str, Figures]) -> None:
    """Print the figures of each way, and by how much the first one is faster."""
    print(f"\n{name:18} {'rows/s':>8} {'CPU µs/row':>11} {'call ms p50':>12} {'p95':>8}")
    for way, one in found.items():
        print(
            f"{way:18} {one.rows_per_second:8.0f} {one.cpu_us_per_row:11.0f}"
            f" {one.call_ms_p50:12.1f} {one.call_ms_p95:8.1f}"
        )
    first, second = found.values()
    print(f"{'ratio':18} {first.rows_per_second / second.rows_per_second:8.1f}")


if __name__ == "__main__":
    main()
