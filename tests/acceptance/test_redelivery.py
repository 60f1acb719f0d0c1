"""Celery delivers a bell again when its visibility timeout is over: the run goes on once."""

import json
import signal
import time
from collections import Counter

import pytest
import redis
from celery import current_app
from django.conf import settings as project

from agents.models import Run
from agents.services.creation import RunRequest, create_run
from journal.models import Call
from tests.agents.helpers import caller_of, has_model, registry
from tests.support.chaos_tools import TOOLS
from tests.support.model_server import ModelServer, ask, by_turn, say
from tests.support.nursery import Nursery

pytestmark = pytest.mark.django_db(transaction=True)

VISIBLE_AFTER = 3
FIVE_CALLS = by_turn(
    *[ask(("look", {"again": n}), ids=(f"call_{n}",)) for n in range(4)], say("All seen.")
)
REDIS = {
    "visibility_timeout": VISIBLE_AFTER,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
}
OPTIONS = ("--", f"broker.transport_options=(dict){json.dumps(REDIS)}")


@pytest.fixture
def queue():
    with redis.Redis.from_url(project.REDIS_URL) as queue:
        queue.delete("celery", "unacked", "unacked_index")
        yield queue
        queue.delete("celery", "unacked", "unacked_index")


@pytest.fixture
def model():
    with ModelServer() as server:
        server.answer_with(lambda request: FIVE_CALLS(request).after(0.8))
        yield server


@pytest.fixture
def nursery(tmp_path):
    with Nursery(
        AGENT_PLUGINS="tests.support.chaos_tools",
        CHAOS_LOG=str(tmp_path / "effects"),
        BROKER_ALLOW_PRIVATE_ADDRESSES="1",
    ) as nursery:
        yield nursery


@pytest.fixture
def start(alice, model, settings):
    """``start()``: a run that calls the model five times, and takes four seconds at least."""
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    has_model(alice, model)

    def start(question="look", **values):
        request = RunRequest(
            messages=[{"role": "user", "content": question}], tools=["look"], **values
        )
        return create_run(caller=caller_of(alice), request=request, available=registry(TOOLS)).run

    return start


def until_ended(*runs, timeout=30):
    deadline = time.monotonic() + timeout
    while Run.objects.filter(id__in=[run.id for run in runs], ended_at=None).exists():
        assert time.monotonic() < deadline, list(Run.objects.values("status", "fence"))
        time.sleep(0.05)


def until_heard(*workers, timeout=20):
    deadline = time.monotonic() + timeout
    while not any("advance_runs[" in worker.output for worker in workers):
        assert time.monotonic() < deadline, "it is not delivered again"
        time.sleep(0.05)


def has_one_story(run, model, *, calls):
    """It ended once; ``calls`` are the steps for which the model was asked, all journaled."""
    run.refresh_from_db()
    assert (run.status, run.output_text) == ("completed", "All seen.")
    asked = Counter(request.messages[0]["content"] for request in model.requests)
    assert asked[run.messages[0]["content"]] == len(calls)
    journaled = Call.objects.filter(run=str(run.id)).order_by("step")
    assert list(journaled.values_list("step", flat=True)) == calls
    kinds = list(run.events.values_list("type", flat=True))
    assert [kind for kind in kinds if kind == f"run.{run.status}"] == kinds[-1:]
    numbers = list(run.events.values_list("sequence_number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    return True


def test_a_bell_that_is_delivered_again_while_its_run_lasts_changes_nothing(
    queue, start, nursery, model
):
    now, later = start("now"), start("later", after_seconds=VISIBLE_AFTER + 1)
    with current_app.connection_for_read() as connection:
        channel = connection.default_channel
        bells = [channel.basic_get("celery"), channel.basic_get("celery")]
        assert all(bells), "taken by a consumer that never acknowledges them"
        first, second = nursery.start(*OPTIONS), nursery.start(*OPTIONS)
        until_heard(first, second)
        assert Run.objects.get(id=now.id).status == "in_progress"
        until_ended(now, later)
    for run in (now, later):
        assert has_one_story(run, model, calls=[1, 3, 5, 7, 9])
    assert (now.fence, later.fence) == (1, 1)
    later.refresh_from_db()
    assert later.started_at >= later.due_at


def test_a_worker_that_is_paused_for_longer_than_its_lease_finds_that_it_has_lost_it(
    queue, start, nursery, model
):
    first = nursery.start(*OPTIONS)
    run = start()
    model.wait_for_requests(2, timeout=20)
    first.signal(signal.SIGSTOP)
    paused = time.monotonic()
    nursery.start(*OPTIONS)
    time.sleep(max(0, 8 - (time.monotonic() - paused)))
    assert Run.objects.get(id=run.id).status == "in_progress", "the second worker is at it"
    first.signal(signal.SIGCONT)
    until_ended(run)
    assert has_one_story(run, model, calls=[1, 3, 3, 5, 7, 9])
    assert run.fence == 2
    assert f"run {run.id} has been taken over by another worker" in first.output
