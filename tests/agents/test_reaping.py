"""Runs that nobody works on are rung for again."""

import base64
import json
from datetime import timedelta

import pytest
import redis
from celery import Celery, current_app
from django.conf import settings
from django.utils import timezone

from agents.models import Run
from agents.services.cancelling import cancel_run
from agents.services.leases import claim
from agents.services.reaping import reap_runs
from tests.agents.helpers import worker_dies
from tests.support.model_server import say

pytestmark = pytest.mark.django_db


@pytest.fixture
def rings():
    """``rings()``: the ids that the queue has been given since, in order."""
    queue = redis.Redis.from_url(settings.REDIS_URL)
    queue.delete("celery")
    yield lambda: [_run_id(message) for message in reversed(queue.lrange("celery", 0, -1))]
    queue.delete("celery")
    queue.close()


def _run_id(message):
    envelope = json.loads(message)
    assert envelope["headers"]["task"] == "agents.advance_run"
    args, kwargs, _ = json.loads(base64.b64decode(envelope["body"]))
    assert kwargs == {}
    (run_id,) = args
    return run_id


def rung_long_ago(run, seconds=60):
    past = timezone.now() - timedelta(seconds=seconds)
    Run.objects.filter(id=run.id).update(rung_at=past)


def test_a_committed_run_rings_with_its_id_and_nothing_else(
    rings, start, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        run = start("my secret question")
        assert rings() == []
    assert rings() == [str(run.id)]


def test_a_lost_ring_is_repeated(rings, start):
    run = start()
    rung_long_ago(run)
    assert reap_runs() == 1
    assert rings() == [str(run.id)]
    assert reap_runs() == 0, "not again before somebody had time to answer"


def test_a_ring_that_may_still_be_heard_is_not_repeated(rings, start):
    start()
    assert reap_runs() == 0
    assert rings() == []


def test_a_dead_workers_run_is_rung_for_and_goes_on(rings, model, start, advance):
    model.script(say("After all."))
    run = start()
    claim(run.id)
    rung_long_ago(run)
    assert reap_runs() == 0, "its worker is alive as far as anybody knows"
    worker_dies(run)
    assert reap_runs() == 1
    assert rings() == [str(run.id)]
    assert advance(run).output_text == "After all."


def test_a_dead_workers_cancelling_run_is_rung_for(rings, start):
    run = start()
    claim(run.id)
    cancel_run(run_id=run.id)
    worker_dies(run)
    rung_long_ago(run)
    assert reap_runs() == 1


def test_runs_that_are_over_or_wait_for_somebody_are_left_alone(rings, start, advance, model):
    model.script(say("Done."))
    over, waiting = advance(start()), start()
    Run.objects.filter(id=waiting.id).update(status="requires_action")
    for run in (over, waiting):
        rung_long_ago(run)
    assert reap_runs() == 0


def test_a_backlog_is_rung_in_batches_the_longest_silent_first(rings, start):
    first, oldest = start(), start()
    rung_long_ago(first, 60)
    rung_long_ago(oldest, 120)
    reap_runs()
    assert rings() == [str(oldest.id), str(first.id)]


def test_a_queue_that_is_down_costs_a_warning_and_no_run(
    start, queue_is_down, django_capture_on_commit_callbacks, caplog
):
    with django_capture_on_commit_callbacks(execute=True):
        run = start()
    assert Run.objects.filter(id=run.id, status="queued").exists()
    assert "the queue did not take it yet" in caplog.text


@pytest.fixture
def queue_is_down():
    usual = current_app._get_current_object()
    down = Celery("down", broker="redis://127.0.0.1:1/0")
    down.conf.broker_transport_options = {"max_retries": 1, "interval_start": 0}
    down.set_current()
    yield
    usual.set_current()
