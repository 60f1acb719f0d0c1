"""One worker at a time writes to a run, whatever the queue delivers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.utils import timezone

from agents.models import Run
from agents.services.checkpoints import Checkpoint, write_checkpoints
from agents.services.dispatch import claim
from agents.services.heartbeat import Heartbeat
from agents.services.leases import Lease, LeaseLostError
from tests.agents.helpers import a_tool, worker_dies
from tests.support.model_server import ask, by_turn, say


@pytest.fixture
def another_worker(advance):
    """``another_worker(run)``: a second worker, in a thread with its own connection."""

    def work(run):
        try:
            return advance(run)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        yield lambda run: pool.submit(copy_context().run, work, run)


@pytest.fixture
def heart(ledger):
    """``heart(…)``: a heartbeat, with what it told of cancelled and lost leases."""
    hearts = []

    def heart(**options):
        told = []
        beating = Heartbeat(ledger, cancelled=told.append, lost=told.append, **options)
        hearts.append(beating)
        beating.told = told
        return beating

    yield heart
    for each in hearts:
        each.close()


def columns(run):
    return Run.objects.filter(id=run.id).values().get()


@pytest.mark.django_db(transaction=True)
def test_a_message_delivered_again_while_the_run_is_worked_on_does_nothing(
    model, start, advance, another_worker
):
    answer_now = threading.Event()
    model.script(say("Once.").behind(answer_now))
    run = start()
    first = another_worker(run)
    model.wait_for_requests(1)
    before = columns(run)
    advance(run)
    advance(run)
    assert columns(run) == before
    answer_now.set()
    assert first.result(10).output_text == "Once."
    assert len(model.requests) == 1


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_was_paused_too_long_writes_and_calls_nothing_more(
    model, start, advance, another_worker
):
    wake_up = threading.Event()
    turns = by_turn(ask(("today", {})), say("By the second worker."))

    def answer(request):
        first = len(model.requests) == 1
        return say("By the first, too late.").behind(wake_up) if first else turns(request)

    model.answer_with(answer)
    run = start(tools=["today"])
    paused = another_worker(run)
    model.wait_for_requests(1)
    worker_dies(run)  # as far as anybody can tell
    run = advance(run)
    assert run.output_text == "By the second worker."
    before, events = columns(run), run.events.count()
    wake_up.set()
    paused.result(10)
    assert (columns(run), run.events.count()) == (before, events)
    assert len(model.requests) == 3
    assert list(run.events.values_list("type", flat=True)).count("run.completed") == 1


@pytest.mark.django_db(transaction=True)
def test_runs_hold_no_connection_while_a_model_or_a_tool_is_at_work(model, complete):
    held = []
    pool = connection.pool

    def in_use():
        stats = pool.get_stats()
        return stats["pool_size"] - stats["pool_available"]

    def look(**_):
        held.append(in_use())
        return "seen"

    turns = by_turn(ask(("look", {})), say("Done."))

    def answer(request):
        look()
        return turns(request)

    model.answer_with(answer)
    connection.ensure_connection()
    before = in_use()
    run = complete(tools=[a_tool("look", look)])
    assert run.status == "completed"
    assert max(held) - before <= 1, "the ledger's, which all runs share"


@pytest.mark.django_db
def test_a_stale_fencing_token_writes_nothing_and_takes_no_other_run_with_it(start):
    run, other = start(), start()
    first, others = claim(run.id).lease, claim(other.id).lease
    worker_dies(run)
    second = claim(run.id).lease
    assert second.fence == first.fence + 1
    used = {"total_tokens": 7}
    stale, sound = write_checkpoints(
        [Checkpoint(lease=first, usage=used), Checkpoint(lease=others, usage=used)]
    )
    assert isinstance(stale, LeaseLostError)
    assert sound is False, "written, and not being cancelled"
    assert (columns(run)["usage"], columns(other)["usage"]) == (None, used)


@pytest.mark.django_db
def test_a_run_is_claimed_again_only_when_its_lease_has_run_out(start):
    run = start()
    assert claim(run.id) is not None
    assert claim(run.id) is None
    worker_dies(run)
    assert claim(run.id) is not None


@pytest.mark.django_db
def test_heartbeats_keep_a_slow_worker_in_possession(start, heart):
    run = start()
    lease = claim(run.id).lease
    beating = heart()
    with beating.keeping(lease):
        worker_dies(run)
        beating.beat()
        assert columns(run)["lease_until"] > timezone.now() + timedelta(seconds=3)
    worker_dies(run)
    beating.beat()
    assert columns(run)["lease_until"] < timezone.now()
    assert beating.told == []


@pytest.mark.django_db
def test_a_heartbeat_does_not_win_back_a_lost_lease_and_tells_of_it(start, heart):
    run = start()
    lease = claim(run.id).lease
    stale = Lease(run.id, lease.fence - 1)
    beating = heart()
    with beating.keeping(stale):
        worker_dies(run)
        beating.beat()
    assert columns(run)["lease_until"] < timezone.now()
    assert beating.told == [stale]


@pytest.mark.django_db(transaction=True)
def test_the_heart_beats_by_itself_while_there_is_a_lease(start, heart):
    run = start()
    lease = claim(run.id).lease
    with heart(every=0.01).keeping(lease):
        worker_dies(run)
        deadline = timezone.now() + timedelta(seconds=10)
        while columns(run)["lease_until"] < timezone.now() < deadline:
            threading.Event().wait(0.01)
    assert columns(run)["lease_until"] > timezone.now()
