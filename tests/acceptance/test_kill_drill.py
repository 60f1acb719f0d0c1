"""kill -9 of web and worker processes at random moments, while runs are asked for over HTTP.

Two rounds here; `DRILL_ROUNDS=10` for the long form. tests/journal has the same for a process
that calls models by itself.
"""

import http.client
import json
import logging
import os
import random
import threading
import time
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone
from uuid_utils import uuid7

from agents.models import Run, Step
from agents.services.reaping import reap_runs
from broker_project.local.ports import free_port
from journal.figures.sweeping import sweep
from journal.models import Call
from tenants.encryption import Secret
from tenants.models import Endpoint
from tenants.services.keys import add_key
from tests.support.model_server import ModelServer, ask, by_turn, say
from tests.support.worker import start_web, start_worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

log = logging.getLogger(__name__)

ROUNDS = int(os.environ.get("DRILL_ROUNDS", "2"))
SEED = int(os.environ.get("DRILL_SEED", time.time_ns()))
CLIENTS, AT_ONCE, TURNS = 2, 8, 2
PLACES = 9  # of a worker: a tenth more than of one tenant, and runs that were lost take them too
TASK = by_turn(ask(("calculate", {"expression": "6 * 7"})), say("42"))


class Clients:
    """Threads that ask for runs without end; a web server that is gone is asked again."""

    def __init__(self, port, token):
        self.accepted = []
        self._port, self._token = port, token
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self):
        while not self._over.wait(0.1):
            body = {
                "messages": [{"role": "user", "content": str(uuid7())}],
                "tools": ["calculate"],
            }
            headers = {
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
            }
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
            try:
                connection.request("POST", "/api/v1/runs", json.dumps(body), headers)
                answer = connection.getresponse()
                assert answer.status == 202, answer.read()
                self.accepted.append(json.loads(answer.read())["id"])
            except (OSError, http.client.HTTPException):
                continue
            finally:
                connection.close()


@pytest.fixture
def model(alice):
    with ModelServer() as server:
        pause = random.Random(SEED)
        server.answer_with(lambda request: TASK(request).after(pause.uniform(0, 0.8)))
        Endpoint.objects.create(
            tenant=alice.tenant, name="m", base_url=server.base_url, model="m", api_key_ref="KEY"
        )
        add_key(scope=alice.scope, ref="KEY", value=Secret("sk-drill"))
        yield server


@pytest.fixture
def processes(tmp_path):
    """How to start each kind; all are stopped at the end."""
    environment = {"JOURNAL_SPOOL_DIR": str(tmp_path), "BROKER_ALLOW_PRIVATE_ADDRESSES": "1"}
    port, started = free_port(), []

    def start(kind):
        process = (
            start_web(port, **environment)
            if kind == "web"
            else start_worker(RUNS_AT_ONCE=str(AT_ONCE), **environment)
        )
        started.append(process)
        return process

    start.port = port
    yield start
    for process in started:
        process.kill()
        process.stop()


def test_every_request_that_the_model_server_saw_has_one_row_and_no_run_lacks_its(
    alice, model, processes, tmp_path
):
    moments = random.Random(SEED)
    running = {kind: processes(kind) for kind in ("web", "worker")}
    for process in running.values():
        process.wait_until_ready()
    with Clients(processes.port, alice.token) as clients:
        for number in range(ROUNDS):
            time.sleep(moments.uniform(1, 3))
            victims = [("web", "worker"), ("worker",), ("web",)][number % 3]
            for kind in victims:
                running[kind].kill()
                running[kind] = processes(kind)
            for kind in victims:
                running[kind].wait_until_ready()
        time.sleep(1)
    running["worker"].kill()
    Run.objects.filter(status__in=Run.WORKING).update(lease_until=None)
    running["worker"] = processes("worker")
    wait_until_ended()
    running["worker"].stop()
    kills = ROUNDS + 1

    runs = {str(run.pk): run for run in Run.objects.all()}
    assert set(clients.accepted) <= set(runs), f"seed {SEED}"
    assert {run.status for run in runs.values()} == {"completed"}, f"seed {SEED}"
    rows = Counter(Call.objects.values_list("run", flat=True))
    seen = Counter(first_words(request) for request in model.requests)
    asked = {key: seen[run.messages[-1]["content"]] for key, run in runs.items()}
    assert all(rows[key] >= asked[key] >= TURNS for key in runs), f"seed {SEED}"
    assert rows.total() - seen.total() <= kills * PLACES, f"seed {SEED}: rows of no request"

    called = list(Step.objects.filter(kind="model_call").values_list("call_id", flat=True))
    assert len(called) == len(set(called)) == TURNS * len(runs)
    assert Call.objects.filter(id__in=called, status="ok").count() == len(called)
    sweep(now=timezone.now() + timedelta(hours=2))
    statuses = Counter(Call.objects.values_list("status", flat=True))
    assert set(statuses) <= {"ok", "unknown"}, f"seed {SEED}"
    assert statuses["unknown"] <= kills * PLACES
    assert list(tmp_path.iterdir()) == []
    log.info("%d runs, %d requests, %s", len(runs), seen.total(), dict(statuses))


def first_words(request):
    return next(each["content"] for each in request.messages if each["role"] == "user")


def wait_until_ended(timeout=300):
    deadline = time.monotonic() + timeout
    while left := Run.objects.exclude(status__in=Run.TERMINAL).count():
        assert time.monotonic() < deadline, f"seed {SEED}: {left} runs did not end"
        reap_runs()
        time.sleep(0.5)
