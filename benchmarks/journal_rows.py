"""The journal at size: rows of many scopes, and what it costs to read and to erase them.

    DATABASE_URL=…/scratch python benchmarks/journal_rows.py --rows 1000000 [--scopes 20000]

Fills the (migrated, scratch) database with rows of Zipf-distributed scopes over 60 days
(journal_fill.py), adds the figures up, then asks three questions of scopes picked by traffic: of
the journal, and of a plain table with the same indexes that holds only that scope's rows. Then it
erases a tenant in batches, and a month of another, and says how long the longest statement held
its locks. Rows that are there already are taken as they are.
"""

import argparse
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import django
import psycopg
from django.db import connection

sys.path.insert(0, str(Path(__file__).parents[1]))

ROUNDS = 25

ALONE = """
DROP TABLE IF EXISTS bench_alone;
CREATE TABLE bench_alone AS SELECT * FROM journal_call WHERE scope_id = '{scope}';
ALTER TABLE bench_alone ADD PRIMARY KEY (id, scope_id);
CREATE INDEX ON bench_alone (scope_id, id);
CREATE INDEX ON bench_alone (scope_id, trace_id, id) WHERE trace_id IS NOT NULL;
DROP TABLE IF EXISTS bench_figures_alone;
CREATE TABLE bench_figures_alone AS
    SELECT * FROM journal_dailyfigures WHERE scope_id = '{scope}';
CREATE UNIQUE INDEX ON bench_figures_alone (tenant_id, scope_id, day);
ANALYZE bench_alone, bench_figures_alone;
GRANT SELECT ON bench_alone, bench_figures_alone TO PUBLIC;
"""


def main() -> None:
    """Fill, ask, erase."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--scopes", type=int, default=20_000)
    options = parser.parse_args()
    django.setup()
    from benchmarks.journal_fill import fill
    from tenants.context import all_tenants

    fill(options.rows, options.scopes)
    timed("add up all days", add_up)
    timed("VACUUM ANALYZE", lambda: execute("VACUUM ANALYZE journal_dailyfigures"))
    sizes()
    ask(options.scopes)
    with all_tenants("benchmark"):
        erase()


def add_up() -> None:
    """As the task does, at the moment of the last row."""
    from journal.figures.adding_up import add_up as bring_up
    from tenants.context import all_tenants

    with all_tenants("benchmark"):
        bring_up(now=end())


def end() -> datetime:
    """When the newest row began."""
    from journal.moments import moment_of

    ((newest,),) = fetch("SELECT id FROM journal_call ORDER BY id DESC LIMIT 1")
    return moment_of(newest)


def sizes() -> None:
    """What the rows take."""
    query = """
        SELECT sum(pg_table_size(inhrelid))::float8, sum(pg_indexes_size(inhrelid))::float8
        FROM pg_inherits
        WHERE inhparent = 'journal_call'::regclass
    """
    ((heap, indexes),) = fetch(query)
    ((figures, days),) = fetch(
        "SELECT pg_total_relation_size('journal_dailyfigures'), count(*) FROM journal_dailyfigures"
    )
    print(
        f"heap {heap / 1e9:.2f} GB, indexes {indexes / 1e9:.2f} GB;"
        f" figures {figures / 1e9:.2f} GB in {days:,} rows"
    )


def ask(scopes: int) -> None:
    """The three questions, of the journal and of tables that hold one scope only."""
    generator = random.Random(1)
    compare("scopes by traffic", lambda: min(scopes, int((scopes + 1) ** generator.random())))
    compare("any scopes", lambda: generator.randint(1, scopes))
    execute("DROP TABLE bench_alone, bench_figures_alone")


def compare(title: str, pick: Callable[[], int]) -> None:
    """Each question of so many scopes, side by side; asked as the scope, within its walls."""
    from tenants.context import Reach, scope_active

    print(f"\n{title + ': ms, p50 / p95':36} {'journal':>16} {'scope alone':>16} {'ratios':>12}")
    found: dict[str, list[tuple[float, float]]] = {}
    numbers: set[int] = set()
    while len(numbers) < ROUNDS:
        numbers.add(pick())
    for number in sorted(numbers):
        scope = UUID(f"00000000-0000-7000-b000-{number:012x}")
        tenant = tenant_id(1 + (number - 1) // 4)
        execute(ALONE.format(scope=scope))
        with scope_active(Reach(tenant, scope)):
            for name, question in questions(tenant, scope).items():
                found.setdefault(name, []).append(side_by_side(question))
    for name, pairs in found.items():
        ours, alones = ([pair[side] for pair in pairs] for side in (0, 1))
        ratios = [ours / alone for ours, alone in pairs]
        print(f"{name:36} {spread(ours):>16} {spread(alones):>16} {spread(ratios, 2):>12}")


def of_the_scope_alone(execute: Callable[..., object], sql: str, *rest: object) -> object:
    """The same statement, of the tables that hold one scope only."""
    names = {"journal_call": "bench_alone", "journal_dailyfigures": "bench_figures_alone"}
    for table, alone in names.items():
        sql = sql.replace(table, alone)
    return execute(sql, *rest)


def questions(tenant: UUID, scope: UUID) -> dict[str, Callable[[], object]]:
    """As the product asks them, by name."""
    from journal.selectors import Reach, calls_of_scope, narrowed
    from journal.statistics import last_days, statistics_of

    newest = calls_of_scope(scope).order_by("-id")
    some = newest.filter(trace_id__isnull=False).first()
    trace = narrowed(newest, trace_id="none" if some is None else some.trace_id)
    month = last_days(30, end())
    return {
        "tail page of 50": lambda: list(newest[:50]),
        "trace look-up": lambda: list(trace[:50]),
        "month of figures": lambda: statistics_of(Reach(tenant, scope), month),
    }


def erase() -> None:
    """A large tenant, and the older month of others: in batches."""
    from journal.retention import erase_journal

    print(f"\n{'':24} {'rows':>11} {'s':>7} {'longest, ms':>12} {'a neighbour writes, ms':>26}")
    month = end() - timedelta(days=30)
    deleted("erase tenant 12", lambda: [erase_journal(tenant_id=tenant_id(12))])
    deleted("drop a month of ten", lambda: drop(range(41, 51), month))


def drop(tenants: Iterable[int], before: datetime) -> Iterable[int]:
    """As retention does, tenant by tenant."""
    from journal.retention import delete_calls

    for number in tenants:
        yield from delete_calls(tenant_id=tenant_id(number), before=before)


def deleted(name: str, work: Callable[[], Iterable[int]]) -> None:
    """Do it beside a writer of other rows, whose waits tell how long locks are held."""
    statements: list[float] = []

    def watch(execute: Callable[..., object], *arguments: Any) -> object:
        started = time.perf_counter()
        result = execute(*arguments)
        statements.append(time.perf_counter() - started)
        return result

    with Neighbour() as neighbour, connection.execute_wrapper(watch):
        started = time.perf_counter()
        rows = sum(work())
        seconds = time.perf_counter() - started
    waits = spread(neighbour.waits) + f", longest {max(neighbour.waits):.0f}"
    print(f"{name:24} {rows:>11,} {seconds:7.1f} {1000 * max(statements):12.0f} {waits:>26}")


class Neighbour:
    """Writes a call of the installation's own every ten milliseconds, as the journal does."""

    def __enter__(self) -> Self:
        self.waits: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        from journal.batches import Kind, record_of, write
        from journal.connections import connect
        from journal.models import INSTALLATION, Call

        with connect() as own:
            while not self._over.wait(0.01):
                call = Call(
                    scope_id=INSTALLATION, llm_name="neighbour", ts=datetime.now(UTC), status="ok"
                )
                started = time.perf_counter()
                write(own, [record_of(Kind.OUTCOME, call)])
                self.waits.append(1000 * (time.perf_counter() - started))


def tenant_id(number: int) -> UUID:
    """Tenants are numbered."""
    return UUID(f"00000000-0000-7000-a000-{number:012x}")


def side_by_side(question: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the journal and of the scope alone, in turn, the best of ten each:
    what others do on this machine is not meant."""
    best = [float("inf"), float("inf")]
    for _ in range(10):
        best[0] = min(best[0], took(question))
        with connection.execute_wrapper(of_the_scope_alone):
            best[1] = min(best[1], took(question))
    return best[0], best[1]


def took(question: Callable[[], object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    question()
    return 1000 * (time.perf_counter() - started)


def spread(values: list[float], digits: int = 1) -> str:
    """Middle and 95th percentile."""
    high = statistics.quantiles(values, n=20)[18]
    return f"{statistics.median(values):.{digits}f} / {high:.{digits}f}"


def timed(name: str, work: Callable[[], object]) -> None:
    """Do it and say how long it took."""
    started = time.perf_counter()
    work()
    print(f"{name}: {time.perf_counter() - started:.1f} s")


def execute(sql: str) -> None:
    """For its effect, past all walls."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as own:
        own.execute(sql)


def fetch(sql: str) -> list[Any]:
    """For its rows, past all walls."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as own:
        return own.execute(sql).fetchall()


if __name__ == "__main__":
    main()
