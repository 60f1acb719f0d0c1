"""Cancelling runs by a filter, and deleting those that are not kept."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Event, Run, RunRetention, Step, Thread
from agents.services import cancelling
from agents.services.retention import delete_old_runs
from agents.services.threads import create_thread
from tests.agents.helpers import caller_of
from tests.support.model_server import say

pytestmark = pytest.mark.django_db

CANCEL = "/api/v1/runs/cancel"


@pytest.fixture
def client(api, alice):
    return api(alice.token)


def statuses():
    return sorted(Run.objects.values_list("trace_id", "status"))


def test_the_runs_that_fit_are_cancelled_and_no_others(client, start):
    start(trace_id="a", metadata={"job": "1"})
    start(trace_id="b", metadata={"job": "1", "more": "x"})
    start(trace_id="c")
    answer = client.post(CANCEL, {"metadata": {"job": "1"}})
    assert answer.json() == {"cancelled": 2, "has_more": False}
    assert statuses() == [("a", "cancelled"), ("b", "cancelled"), ("c", "queued")]
    assert client.post(CANCEL, {"all": True}).json()["cancelled"] == 1


@pytest.mark.parametrize("body", [{}, {"all": False}, {"all": True, "trace_id": "a"}, {"id": "x"}])
def test_everything_is_cancelled_only_where_that_is_said(client, start, body):
    start()
    assert client.post(CANCEL, body).status_code == 400
    assert Run.objects.get().status == "queued"


def test_many_are_cancelled_in_several_requests(client, start, monkeypatch):
    monkeypatch.setattr(cancelling, "BATCH", 2)
    for _ in range(3):
        start()
    assert client.post(CANCEL, {"all": True}).json() == {"cancelled": 2, "has_more": True}
    assert client.post(CANCEL, {"all": True}).json() == {"cancelled": 1, "has_more": False}


def test_a_colleagues_runs_are_not_cancelled(start, api, bob):
    start()
    assert api(bob.token).post(CANCEL, {"all": True}).json()["cancelled"] == 0


def test_runs_go_when_their_days_have_passed_with_all_that_hangs_on_them(
    alice, charlie, model, complete, start
):
    model.script(say("1"), say("2"))
    old, new, going = complete(), complete(), start()
    later = timezone.now() + timedelta(days=31)
    Run.objects.filter(id=new.id).update(ended_at=later - timedelta(days=1))
    theirs = Run.objects.create(
        tenant=charlie.tenant,
        scope=charlie.scope,
        messages=[],
        trace_id="t",
        status="cancelled",
        ended_at=timezone.now(),
    )
    create_thread(caller=caller_of(alice), messages=[{"role": "user", "content": "hi"}])
    RunRetention.objects.create(tenant=alice.tenant, days=30)
    assert delete_old_runs(now=later, batch=1) == 1
    assert set(Run.objects.values_list("id", flat=True)) == {new.id, going.id, theirs.id}
    assert not Step.objects.filter(run=old.id).exists()
    assert not Event.objects.filter(run=old.id).exists()
    assert not Thread.objects.exists()
