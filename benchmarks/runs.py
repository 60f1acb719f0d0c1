# ruff: noqa: E402 - Django is set up before its models are imported
"""What a durable run costs: a real worker, PostgreSQL, Redis, and a model that takes its time.

    DATABASE_URL=… REDIS_URL=… python benchmarks/runs.py [--runs 2000] [--latency 1] [--slots 1000]

Runs of three calls of a model and two tools are queued first; then a worker process starts, and
is watched until the last one has ended. Beside it, with ``--plain``, the same loop in plain
Celery tasks: no lease, no checkpoint, no journal; with ``--langgraph``, as LangGraph's agent in one
process, in memory. The database named (migrated, please) gets a tenant that is removed again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")
os.environ["BROKER_ALLOW_PRIVATE_ADDRESSES"] = "1"
os.environ["AGENT_PLUGINS"] = "benchmarks.run_tools"

import django

django.setup()

import conversation
import peer
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now

from agents.models import Run
from agents.services.events import append_to_logs, entered
from tenants.context import all_tenants
from tenants.encryption import Secret
from tenants.models import Endpoint, Tenant
from tenants.services.keys import add_key
from tenants.services.people import NewTenant, create_tenant

TICKS = os.sysconf("SC_CLK_TCK")
STEPS = conversation.CALLS + len(conversation.TURNS)
"""Of one run: its calls of the model, and its tools."""
LANGGRAPH = ("langgraph", "langchain-openai")
LOOK = 0.05
"""Seconds between two looks at how far the runs are."""


@dataclass(frozen=True)
class Figures:
    """Of one worker that did all runs."""

    makespan: float
    ideal: float
    cpu_ms: float
    peak_mb: float
    connections: int

    def __str__(self) -> str:
        return (
            f"{self.makespan:.2f} s, {self.makespan / self.ideal:.2f} × ideal,"
            f" {self.cpu_ms:.2f} ms CPU per run ({self.cpu_ms / STEPS:.2f} per step),"
            f" peak {self.peak_mb:.0f} MB, {self.connections} connections"
        )


class Process:
    """A process that is watched: its CPU, its memory."""

    def __init__(self, *command: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if "celery" in command else None,
            text=True,
        )

    def wait_for(self, word: str) -> str:
        """The line of output that holds ``word``."""
        for line in self.process.stdout or ():
            if word in line:
                return line
        raise RuntimeError(f"{self.process.args} has ended")

    def drain(self) -> None:
        """Let its further output go nowhere, so that it never waits for a reader."""
        subprocess.Popen(["cat"], stdin=self.process.stdout, stdout=subprocess.DEVNULL)

    @property
    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def peak_mb(self) -> float:
        """The most memory it has had, in megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def end(self) -> float:
        """Stop it as a deploy does; returns the seconds that took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        return time.monotonic() - began


@contextmanager
def model_server(latency: float) -> Iterator[str]:
    """The base URL of a model that answers after ``latency`` seconds."""
    server = Process("benchmarks/fake_server.py", "--latency", str(latency))
    try:
        yield f"http://127.0.0.1:{server.wait_for('').strip()}/v1"
    finally:
        server.process.kill()
        server.process.wait()


@contextmanager
def tenant(base_url: str, slug: str = "bench-runs") -> Iterator[NewTenant]:
    """A tenant with one model and its key, removed again afterwards."""
    remove(slug)
    owner = User.objects.create_user(username=slug, email=f"{slug}@bench.example")
    new = create_tenant(slug=slug, owner=owner)
    Endpoint.objects.create(
        tenant=new.tenant,
        name="bench",
        base_url=base_url,
        model="bench",
        api_key_ref=conversation.KEY_REF,
    )
    add_key(scope=new.shared, ref=conversation.KEY_REF, value=Secret(conversation.KEY))
    try:
        yield new
    finally:
        remove(slug)


def remove(slug: str) -> None:
    """The tenant of that name, with all it has."""
    with connection.cursor() as cursor:
        for table in ("agents_event", "agents_step"):
            cursor.execute(
                f"DELETE FROM {table} WHERE run_id IN (SELECT run.id FROM agents_run AS run"  # noqa: S608
                " JOIN tenants_tenant AS tenant ON tenant.id = run.tenant_id"
                " WHERE tenant.slug = %s)",
                [slug],
            )
    Tenant.objects.filter(slug=slug).delete()
    User.objects.filter(username=slug).delete()


def queue_runs(new: NewTenant, count: int, *, deltas: bool = False) -> None:
    """So many runs, due all at once when this has written them."""
    later = datetime.now(UTC) + timedelta(days=1)
    runs = [
        Run(
            tenant=new.tenant,
            scope=new.personal,
            messages=conversation.MESSAGES,
            tools=["today", "weather"],
            trace_id=f"bench-{number}",
            deltas=deltas,
            due_at=later,
        )
        for number in range(count)
    ]
    Run.objects.bulk_create(runs, batch_size=500)
    append_to_logs([(run.id, entered(Run.Status.QUEUED)) for run in runs])
    Run.objects.filter(tenant=new.tenant).update(due_at=Now())


@contextmanager
def worker(
    slots: int, *, app: str = "broker_project", threads: int = 4, **environment: str
) -> Iterator[Process]:
    """A worker as operators start it."""
    process = Process(
        *("-m", "celery", "-A", app, "worker", "-P", "threads", "-c", str(threads)),
        *("-l", "INFO", "--without-gossip", "--without-mingle"),
        RUNS_AT_ONCE=str(slots),
        **environment,
    )
    try:
        process.wait_for(" ready.")
        process.drain()
        yield process
    finally:
        process.end()


def measured(
    new: NewTenant, *, runs: int, latency: float, slots: int, deltas: bool = False
) -> Figures:
    """The figures of one worker, from the first run that is due until the last has ended."""
    with worker(slots) as process:
        queue_runs(new, runs, deltas=deltas)
        began, cpu, connections = time.monotonic(), process.cpu, 0
        while Run.objects.filter(tenant=new.tenant, ended_at=None).exists():
            connections = max(connections, _connections())
            time.sleep(LOOK)
        makespan = time.monotonic() - began
        if Run.objects.filter(tenant=new.tenant).exclude(output_text=conversation.ANSWER).exists():
            raise RuntimeError("a run has not ended with the answer")
        return Figures(
            makespan,
            ideal=conversation.CALLS * latency * -(-runs // slots),
            cpu_ms=(process.cpu - cpu) * 1000 / runs,
            peak_mb=process.peak_mb,
            connections=connections,
        )


def measured_plain(url: str, *, runs: int, latency: float, slots: int) -> Figures:
    """The same for plain Celery tasks, as many threads as slots."""
    from benchmarks import plain_tasks

    queue = redis.Redis.from_url(settings.REDIS_URL)
    queue.delete(plain_tasks.DONE, "bench-plain")
    with worker(slots, app="benchmarks.plain_tasks", threads=slots, BENCH_MODEL=url) as process:
        for _ in range(runs):
            plain_tasks.loop.delay()
        began, cpu = time.monotonic(), process.cpu
        while int(queue.get(plain_tasks.DONE) or 0) < runs:
            time.sleep(LOOK)
        return Figures(
            time.monotonic() - began,
            ideal=conversation.CALLS * latency * -(-runs // slots),
            cpu_ms=(process.cpu - cpu) * 1000 / runs,
            peak_mb=process.peak_mb,
            connections=0,
        )


def measured_langgraph(url: str, *, runs: int, latency: float, slots: int) -> Figures:
    """The same for LangGraph's agent, in a process and an environment of its own."""
    python = peer.python(ROOT / ".data" / "bench" / "langgraph-venv", LANGGRAPH)
    command = [python, "benchmarks/langgraph_loop.py", url, "--runs", str(runs)]
    done = subprocess.run(
        [*command, "--slots", str(slots)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    figures = json.loads(done.stdout)
    return Figures(
        figures["seconds"],
        ideal=conversation.CALLS * latency * -(-runs // slots),
        cpu_ms=figures["cpu"] * 1000 / runs,
        peak_mb=figures["peak_mb"],
        connections=0,
    )


def waited(new: NewTenant, other: NewTenant, *, backlog: int, slots: int) -> tuple[float, float]:
    """Seconds that one run of ``other``'s takes alone, and behind a backlog of ``new``'s."""
    with worker(slots):
        alone = _seconds_of_one(other)
        queue_runs(new, backlog)
        time.sleep(1.0)
        return alone, _seconds_of_one(other)


def _seconds_of_one(whose: NewTenant) -> float:
    queue_runs(whose, 1)
    began = time.monotonic()
    while Run.objects.filter(tenant=whose.tenant, ended_at=None).exists():
        time.sleep(LOOK)
    return time.monotonic() - began


def _connections() -> int:
    """Those of the database in use beside our own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()"
        )
        (count,) = cursor.fetchone()
        return int(count)


def main() -> None:
    """Measure, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--latency", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--plain", action="store_true", help="plain Celery tasks beside it")
    parser.add_argument("--langgraph", action="store_true", help="LangGraph's agent beside it")
    parser.add_argument("--deltas", action="store_true", help="tell each run's words live")
    parser.add_argument("--backlog", type=int, help="only: one run behind so many of another's")
    asked = parser.parse_args()
    with (
        all_tenants("a benchmark"),
        model_server(asked.latency) as url,
        tenant(url) as new,
        tenant(url, "bench-other") as other,
    ):
        if asked.backlog:
            alone, behind = waited(new, other, backlog=asked.backlog, slots=asked.slots)
            print(f"alone {alone:.2f} s, behind {asked.backlog} runs {behind:.2f} s")
            return
        sizes = {"runs": asked.runs, "latency": asked.latency, "slots": asked.slots}
        durable = measured(new, **sizes, deltas=asked.deltas)
        print("durable runs:", durable)
        for wanted, name, measure in (
            (asked.plain, "plain tasks: ", measured_plain),
            (asked.langgraph, "LangGraph:   ", measured_langgraph),
        ):
            if wanted:
                other_way = measure(url, **sizes)
                print(name, other_way)
                print(f"durable runs take {durable.cpu_ms / other_way.cpu_ms:.2f} times that CPU")


if __name__ == "__main__":
    main()
