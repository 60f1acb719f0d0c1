"""Rows for benchmarks/journal_rows.py, made by PostgreSQL itself.

The journal is filled without its indexes and foreign keys, which are built afterwards, one
after the other, as they were defined. Only an empty journal of a scratch database is filled;
where the script was stopped half-way, drop the database.
"""

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

DAYS = 60
END = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
START = END - timedelta(days=DAYS)
BATCH = 500_000

# One process of the server at a time: others work on this machine.
SESSION = """
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';
SET max_parallel_maintenance_workers = 0;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
"""

# Scopes and tenants are numbered, their ids made of the numbers; four scopes to a tenant.
# A trace is three calls of one scope, one after the other; its scope is Zipf(1) by inversion.
# Times rise with the row, as they do in life.
ROWS = """
INSERT INTO journal_call (id, tenant_id, scope_id, operation, trace_id, run, step, llm_name,
    base_url, model, key_id, key_source, ts, status, http_status, streamed, latency_ms,
    prompt_tokens, completion_tokens, total_tokens, error_class, cost_micros, price)
SELECT (lpad(to_hex((extract(epoch FROM ts) * 1000)::bigint), 12, '0') || '7000'
        || to_hex(32768 + (n %% 16384)::int) || lpad(to_hex(n), 12, '0'))::uuid,
    ('00000000-0000-7000-a000-' || lpad(to_hex(1 + (scope - 1) / 4), 12, '0'))::uuid,
    ('00000000-0000-7000-b000-' || lpad(to_hex(scope), 12, '0'))::uuid,
    (ARRAY['chat', 'summary', 'agent', NULL])[1 + trace %% 4],
    'trace-' || lpad(to_hex(trace), 16, '0'),
    CASE WHEN trace %% 4 = 2 THEN 'run-' || trace END, CASE WHEN trace %% 4 = 2 THEN n %% 3 END,
    'provider/model-' || model, 'https://api.provider.example/v1', 'model-' || model,
    'key-' || scope, 'own', ts, CASE WHEN n %% 25 = 0 THEN 'rate_limited' ELSE 'ok' END,
    200, false, 200 + (random() * random() * 9000)::int, 800, 200, 1000,
    CASE WHEN n %% 25 = 0 THEN 'rate_limited' END, 240, 'genai-prices 0.2.3 provider/model'
FROM (
    SELECT n, n / 3 AS trace, (n * 7) %% 5 AS model,
        %(start)s::timestamptz + (n::float8 / %(rows)s) * %(span)s AS ts,
        floor(exp(
            (hashint8(n / 3)::bigint + 2147483648) / 4294967296.0::float8
                * ln(%(scopes)s + 1.0::float8)
        ))::int AS scope
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
) AS made
"""

# None of these calls is open, so that there is nothing to be swept.
SWEPT = "INSERT INTO journal_progress (name, until) VALUES ('sweep', %s)"

CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conparentid = 0 AND (
    (conrelid = 'journal_call'::regclass AND contype = 'p')
    OR (confrelid = 'journal_call'::regclass AND contype = 'f'))
ORDER BY contype DESC
"""
INDEXES = """
SELECT indexrelid::regclass::text, replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ')
FROM pg_index
WHERE indrelid = 'journal_call'::regclass AND NOT indisprimary
"""


def fill(rows: int, scopes: int) -> None:
    """Bring an empty journal to ``rows`` rows of ``scopes`` scopes; leave a filled one alone."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM journal_call LIMIT 1").fetchone():
            print("the journal has rows already: they are taken as they are")
            return
        connection.execute(SESSION)
        started = time.perf_counter()
        rebuild = _strip(connection)
        _insert(connection, rows, scopes)
        filled = time.perf_counter()
        print(
            f"{rows:,} rows of {scopes:,} scopes; {rows / (filled - started):,.0f} rows/s",
            flush=True,
        )
        for statement in rebuild:
            connection.execute(statement)
            print(f"{time.perf_counter() - filled:7.0f} s  {statement[:90]}", flush=True)
        connection.execute(SWEPT, [END - timedelta(hours=1)])
        connection.execute("VACUUM (ANALYZE) journal_call")
        print(f"built and analyzed in {time.perf_counter() - filled:,.0f} s", flush=True)


def _strip(connection: "psycopg.Connection[Any]") -> list[str]:
    """Drop indexes and keys; the statements that make them again."""
    constraints = connection.execute(CONSTRAINTS).fetchall()
    indexes = connection.execute(INDEXES).fetchall()
    again = [
        f"ALTER TABLE {table} ADD CONSTRAINT {name} {rule}" for table, name, rule in constraints
    ]
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    for table, name, _ in reversed(constraints):
        connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    return [*(definition for _, definition in indexes), *again]


def _insert(connection: "psycopg.Connection[Any]", rows: int, scopes: int) -> None:
    given = {"start": START, "span": timedelta(days=DAYS), "rows": rows, "scopes": scopes}
    for first in range(1, rows + 1, BATCH):
        last = min(first + BATCH - 1, rows)
        connection.execute(ROWS, {**given, "first": first, "last": last})
