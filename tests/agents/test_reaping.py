"""A bell that nobody heard is rung again; it carries nothing."""

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
from agents.services.dispatch import claim
from agents.services.reaping import reap_runs
from tests.agents.helpers import worker_dies
from tests.support.model_server import say

pytestmark = pytest.mark.django_db


@pytest.fixture
def rings():
    """``rings()``: how often the bell was rung."""
    queue = redis.Redis.from_url(settings.REDIS_URL)
    queue.delete("celery")
    yield lambda: len([_checked(message) for message in queue.lrange("celery", 0, -1)])
    queue.delete("celery")
    queue.close()


def _checked(message):
    envelope = json.loads(message)
    assert envelope["headers"]["task"] == "agents.advance_runs"
    args, kwargs, _ = json.loads(base64.b64decode(envelope["body"]))
    assert (args, kwargs) == ([], {})


def test_a_committed_run_rings_with_nothing_said(rings, start, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        start("my secret question")
        assert rings() == 0
    assert rings() == 1


def test_a_run_that_nobody_took_is_rung_for_again(rings, start):
    start()
    assert reap_runs()
    assert rings() == 1


def test_a_dead_workers_run_is_rung_for_and_goes_on(rings, model, start, advance):
    model.script(say("After all."))
    run = start()
    claim(run.id)
    assert not reap_runs(), "its worker is alive as far as anybody knows"
    worker_dies(run)
    assert reap_runs()
    assert advance(run).output_text == "After all."


def test_a_dead_workers_cancelling_run_is_rung_for(rings, start):
    run = start()
    claim(run.id)
    cancel_run(run_id=run.id)
    worker_dies(run)
    assert reap_runs()


def test_runs_that_are_over_or_wait_are_left_alone(rings, start, advance, model):
    model.script(say("Done."))
    advance(start())
    waiting, later = start(), start()
    Run.objects.filter(id=waiting.id).update(status="requires_action")
    tomorrow = timezone.now() + timedelta(days=1)
    Run.objects.filter(id=later.id).update(due_at=tomorrow)
    assert not reap_runs()
    assert rings() == 0


def test_a_queue_that_is_down_costs_a_warning_and_no_run(
    start, queue_is_down, django_capture_on_commit_callbacks, caplog
):
    with django_capture_on_commit_callbacks(execute=True):
        run = start()
    assert Run.objects.filter(id=run.id, status="queued").exists()
    assert "the queue did not take its ring" in caplog.text


@pytest.fixture
def queue_is_down():
    usual = current_app._get_current_object()
    down = Celery("down", broker="redis://127.0.0.1:1/0")
    down.conf.broker_transport_options = {"max_retries": 1, "interval_start": 0}
    down.set_current()
    yield
    usual.set_current()
