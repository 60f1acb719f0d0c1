"""The journal at size: rows of many scopes, and what it costs to read and to erase them.

    DATABASE_URL=…/scratch python benchmarks/journal_rows.py --rows 1000000 [--scopes 20000]

Fills the (migrated, scratch) database with rows of Zipf-distributed scopes over 60 days, adds
the figures up, then asks three questions of scopes picked by traffic: of the journal, and of a
plain table with the same indexes that holds only that scope's rows. Then it erases a tenant in
batches, and a month of another, and says how long the longest statement held its locks.
Rows that are there already are kept: give a larger --rows to go on filling.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import django
from django.db import connection

sys.path.insert(0, str(Path(__file__).parents[1]))

DAYS = 60
END = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
START = END - timedelta(days=DAYS)
BATCH = 100_000
ROUNDS = 40

# Scopes and tenants are numbered, their ids made of the numbers; four scopes to a tenant.
# Four scopes to a tenant; ids are made of the numbers. Calls need no rows of either.
# A scope's number is Zipf(1) by inversion; times rise with the row, as they do in life.
ROWS = """
INSERT INTO journal_call (id, tenant_id, scope_id, operation, trace_id, llm_name, base_url, model,
    key_id, key_source, ts, status, http_status, streamed, latency_ms, prompt_tokens,
    completion_tokens, total_tokens, error_class, cost_micros, price)
SELECT (lpad(to_hex((extract(epoch FROM ts) * 1000)::bigint), 12, '0') || '7000'
        || to_hex(32768 + (n %% 16384)::int) || lpad(to_hex(n), 12, '0'))::uuid,
    ('00000000-0000-7000-a000-' || lpad(to_hex(1 + (scope - 1) / 4), 12, '0'))::uuid,
    ('00000000-0000-7000-b000-' || lpad(to_hex(scope), 12, '0'))::uuid,
    (ARRAY['chat', 'summary', 'agent', NULL])[1 + n %% 4],
    lpad(to_hex((extract(epoch FROM ts) * 1000)::bigint), 12, '0') || '-' || n / 3,
    'provider/model-' || model, 'https://api.provider.example/v1', 'model-' || model,
    'key-' || scope, 'own', ts, CASE WHEN n %% 25 = 0 THEN 'rate_limited' ELSE 'ok' END,
    200, false, 200 + (random() * random() * 9000)::int, 800, 200, 1000,
    CASE WHEN n %% 25 = 0 THEN 'rate_limited' END, 240, 'genai-prices 0.2.3 provider/model'
FROM (
    SELECT n, %(start)s::timestamptz + (n::float8 / %(rows)s) * %(span)s::interval AS ts,
           floor(exp(random() * ln(%(scopes)s + 1)))::int AS scope, (n * 7) %% 5 AS model
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
) AS made
"""
ALONE = """
DROP TABLE IF EXISTS bench_alone;
CREATE TABLE bench_alone AS SELECT * FROM journal_call WHERE scope_id = %(scope)s;
ALTER TABLE bench_alone ADD PRIMARY KEY (id, scope_id);
CREATE INDEX ON bench_alone (scope_id, id);
CREATE INDEX ON bench_alone (scope_id, trace_id, id) WHERE trace_id IS NOT NULL;
DROP TABLE IF EXISTS bench_figures_alone;
CREATE TABLE bench_figures_alone AS
    SELECT * FROM journal_dailyfigures WHERE scope_id = %(scope)s;
CREATE INDEX ON bench_figures_alone (tenant_id, scope_id, day);
ANALYZE bench_alone, bench_figures_alone;
"""


def main() -> None:
    """Fill, ask, erase."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--scopes", type=int, default=20_000)
    options = parser.parse_args()
    django.setup()
    fill(options.rows, options.scopes)
    timed("add up all days", add_up)
    timed("VACUUM ANALYZE", lambda: execute("VACUUM ANALYZE journal_call, journal_dailyfigures"))
    sizes()
    ask(options.scopes)
    erase()


def fill(rows: int, scopes: int) -> None:
    """Bring the journal to ``rows`` rows."""
    ((there,),) = fetch("SELECT count(*) FROM journal_call")
    started = time.perf_counter()
    for first in range(there + 1, rows + 1, BATCH):
        last = min(first + BATCH - 1, rows)
        span = f"{DAYS} days"
        execute(
            ROWS,
            {
                "start": START,
                "span": span,
                "rows": rows,
                "scopes": scopes,
                "first": first,
                "last": last,
            },
        )
    seconds = time.perf_counter() - started
    print(f"{rows:,} rows of {scopes:,} scopes; {(rows - there) / max(seconds, 1e-9):,.0f} rows/s")


def add_up() -> None:
    """As the task does."""
    from journal.figures.adding_up import add_up as bring_up

    bring_up(now=datetime.now(UTC))


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
    print(f"\n{'ms, p50 / p95':28} {'journal':>18} {'scope alone':>18} {'ratio of p50':>13}")
    found: dict[str, list[tuple[float, float]]] = {}
    generator = random.Random(1)
    for _ in range(ROUNDS):
        number = min(scopes, int((scopes + 1) ** generator.random()))
        scope = UUID(f"00000000-0000-7000-b000-{number:012x}")
        tenant = UUID(f"00000000-0000-7000-a000-{1 + (number - 1) // 4:012x}")
        execute(ALONE, {"scope": scope})
        for name, question in questions(tenant, scope).items():
            journal = took(question)
            with connection.execute_wrapper(of_the_scope_alone):
                alone = took(question)
            found.setdefault(name, []).append((1000 * journal, 1000 * alone))
    for name, pairs in found.items():
        journal_ms, alone_ms = ([pair[side] for pair in pairs] for side in (0, 1))
        ratio = statistics.median(journal_ms) / statistics.median(alone_ms)
        print(f"{name:28} {spread(journal_ms):>18} {spread(alone_ms):>18} {ratio:13.2f}")
    execute("DROP TABLE bench_alone, bench_figures_alone")


def of_the_scope_alone(execute: Callable[..., object], sql: str, *rest: object) -> object:
    """The same statement, of the tables that hold one scope only."""
    names = {"journal_call": "bench_alone", "journal_dailyfigures": "bench_figures_alone"}
    for table, alone in names.items():
        sql = sql.replace(table, alone)
    return execute(sql, *rest)


def questions(tenant: UUID, scope: UUID) -> dict[str, Callable[[], object]]:
    """As the product asks them, by name."""
    from journal.selectors import Reach, calls_of_scope, narrowed
    from journal.statistics import Period, statistics_of

    newest = calls_of_scope(scope).order_by("-id")
    some = newest.filter(trace_id__isnull=False).first()
    trace = narrowed(newest, trace_id="none" if some is None else some.trace_id)
    month = Period(END - timedelta(days=30), END)
    return {
        "tail page of 50": lambda: list(newest[:50]),
        "trace look-up": lambda: list(trace[:50]),
        "month of figures": lambda: statistics_of(Reach(tenant, scope), month),
    }


def erase() -> None:
    """A tenant of middling size, and the older month of the largest: in batches."""
    from journal.retention import delete_calls

    print()
    for name, tenant, before in (
        ("erase tenant 10", 10, None),
        ("drop a month of tenant 1", 1, START + timedelta(days=30)),
    ):
        tenant_id = UUID(f"00000000-0000-7000-a000-{tenant:012x}")
        batches: list[float] = []
        started = last = time.perf_counter()
        rows = 0
        for deleted in delete_calls(tenant_id=tenant_id, before=before):
            now = time.perf_counter()
            batches.append(now - last)
            rows, last = rows + deleted, now
        print(
            f"{name:28} {rows:>9,} rows in {last - started:6.1f} s,"
            f" longest batch {1000 * max(batches, default=0):.0f} ms"
        )


def took(question: Callable[[], object]) -> float:
    """Seconds, the best of four: what others do on this machine is not meant."""
    best = float("inf")
    for _ in range(4):
        started = time.perf_counter()
        question()
        best = min(best, time.perf_counter() - started)
    return best


def spread(values: list[float]) -> str:
    """Middle and 95th percentile."""
    return f"{statistics.median(values):.1f} / {statistics.quantiles(values, n=20)[18]:.1f}"


def timed(name: str, work: Callable[[], object]) -> None:
    """Do it and say how long it took."""
    started = time.perf_counter()
    work()
    print(f"{name}: {time.perf_counter() - started:.1f} s")


def execute(sql: str, params: object = None) -> None:
    """For its effect."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def fetch(sql: str, params: object = None) -> list[tuple]:  # type: ignore[type-arg]
    """For its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


if __name__ == "__main__":
    main()
