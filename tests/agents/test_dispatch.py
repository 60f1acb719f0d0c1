"""Whose run comes next: tenants take turns, and nobody's backlog is anybody else's wait."""

import random
import threading
import time
from collections import Counter
from decimal import Decimal

import pytest
from django.db import connection

from agents.models import Run
from agents.services.cancelling import cancel_run
from agents.services.creation import RunRequest, create_run
from agents.services.dispatch import claim_runs, queues
from agents.services.worker import Pace, RunWorker
from llmbroker import ToolContext
from tenants.models import Limit
from tenants.services.limits import set_limit
from tests.agents.helpers import a_tool, caller_of, registry, worker_dies
from tests.support.model_server import ask, by_turn, say


@pytest.fixture
def queue(native):
    """``queue(person, 3)``: that many runs, the oldest first."""

    def queue(person, count):
        request = RunRequest(messages=[{"role": "user", "content": person.user.username}])
        return [
            create_run(caller=caller_of(person), request=request, available=native).run
            for _ in range(count)
        ]

    return queue


def take(slots, *, held=None, share=1000):
    """How many runs of each tenant are claimed."""
    claimed = claim_runs(slots=slots, held=held or {}, share=share)
    return Counter(each.run.tenant.slug for each in claimed)


@pytest.mark.django_db
def test_tenants_take_turns_however_long_their_queues_are(queue, alice, charlie):
    queue(alice, 20)
    queue(charlie, 3)
    assert take(4) == {"acme": 2, "globex": 2}
    assert take(4) == {"acme": 3, "globex": 1}


@pytest.mark.django_db
def test_what_a_tenant_has_at_work_counts_as_turns_it_has_had(queue, alice, charlie):
    queue(alice, 20)
    assert take(5) == {"acme": 5}
    queue(charlie, 20)
    assert take(7) == {"globex": 6, "acme": 1}


@pytest.mark.django_db
def test_a_weight_is_a_multiple_of_turns(queue, alice, charlie):
    alice.tenant.run_weight = 3
    alice.tenant.save()
    queue(alice, 20)
    queue(charlie, 20)
    assert take(8) == {"acme": 6, "globex": 2}


@pytest.mark.django_db
def test_runs_come_in_the_order_of_their_tenants_queue(queue, alice):
    first, second, third = queue(alice, 3)
    assert [each.run.id for each in claim_runs(slots=2, held={}, share=9)] == [first.id, second.id]
    assert [each.run.id for each in claim_runs(slots=2, held={}, share=9)] == [third.id]


@pytest.mark.django_db
def test_caps_hold_for_a_tenant_and_for_a_scope(queue, alice, bob, charlie):
    kind = Limit.Kind.EXECUTING_RUNS
    set_limit(tenant=alice.tenant, kind=kind, value=Decimal(4))
    set_limit(tenant=alice.tenant, scope=bob.scope, kind=kind, value=Decimal(1))
    queue(bob, 5)
    queue(alice, 5)
    queue(charlie, 5)
    claimed = claim_runs(slots=20, held={}, share=1000)
    whose = Counter(each.run.scope_id for each in claimed)
    assert whose[bob.scope.id] == 1
    assert whose[charlie.scope.id] == 5
    while more := claim_runs(slots=20, held={}, share=1000):
        whose.update(each.run.scope_id for each in more)
    assert (whose[bob.scope.id], whose[alice.scope.id]) == (1, 3)


@pytest.mark.django_db
def test_one_tenant_never_has_all_slots_of_a_worker(queue, alice):
    queue(alice, 10)
    assert take(8, share=6) == {"acme": 6}
    assert take(8, held={alice.tenant.id: 6}, share=6) == {}


@pytest.mark.django_db
def test_a_dead_workers_runs_come_before_the_queue(queue, alice, charlie):
    (lost,) = queue(charlie, 1)
    assert take(1) == {"globex": 1}
    queue(alice, 5)
    worker_dies(lost)
    (claimed,) = claim_runs(slots=1, held={}, share=9)
    assert (claimed.run.id, claimed.lease.fence) == (lost.id, 2)


@pytest.mark.django_db
def test_a_claim_takes_the_same_few_statements_for_any_number_of_runs(
    queue, alice, django_assert_max_num_queries
):
    queue(alice, 12)
    with django_assert_max_num_queries(6):
        assert len(claim_runs(slots=12, held={}, share=99)) == 12


@pytest.mark.django_db
def test_tenants_that_wait_are_told_with_what_they_have(queue, alice, charlie):
    queue(alice, 3)
    queue(charlie, 1)
    take(3)
    (waiting,) = queues()
    assert (waiting.tenant_id, waiting.busy) == (alice.tenant.id, 2)


@pytest.fixture
def working(broker):
    """``with working(registry, slots=2)``: a worker in this process."""
    workers = []

    def working(tools, **pace):
        worker = RunWorker(broker, lambda _: tools, pace=Pace(look=0.05, **pace))
        workers.append(worker)
        worker.start()
        return worker

    yield working
    for worker in workers:
        worker.stop()


def until(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ended(*runs):
    return Run.objects.filter(id__in=[run.id for run in runs], ended_at__isnull=False).count()


@pytest.mark.django_db(transaction=True)
def test_a_worker_takes_what_is_due_without_being_rung_for(model, queue, alice, working, native):
    model.answer_with(lambda request: say("Done."))
    runs = queue(alice, 30)
    working(native)
    until(lambda: ended(*runs) == 30)
    assert len(model.requests) == 30


@pytest.mark.django_db(transaction=True)
def test_a_run_that_has_used_its_slice_makes_room_for_another_tenants(
    *, model, queue, alice, charlie, working, native
):
    """All slots are held by long runs of acme's when globex' only run comes."""

    def answer(request):
        if request.messages[0]["content"] == "charlie":
            return say("Done.")
        return ask(("today", {"timezone": f"{len(model.requests)}"})).after(0.1)

    model.answer_with(answer)
    for run in queue(alice, 3):
        Run.objects.filter(id=run.id).update(tools=["today"], max_steps=60)
    working(native, slots=2, spare=0.0, slice=0.2)
    model.wait_for_requests(4)
    (run,) = queue(charlie, 1)
    until(lambda: ended(run))
    assert Run.objects.filter(tenant=alice.tenant, ended_at=None).count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_stopped_hands_its_runs_on_and_loses_no_finished_step(
    model, queue, alice, working
):
    model.answer_with(by_turn(ask(("look", {})).after(0.3), say("Done.").after(30)))
    tools = registry([a_tool("look", lambda: "seen")])
    (run,) = queue(alice, 1)
    Run.objects.filter(id=run.id).update(tools=["look"])
    worker = working(tools, hand_over=0.2)
    model.wait_for_requests(2)
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 5
    done = list(run.steps.filter(status="completed").values())
    assert [step["kind"] for step in done] == ["model_call", "tool_call"]

    model.answer_with(lambda request: say("By the next worker."))
    working(tools)
    until(lambda: ended(run))
    assert Run.objects.get(id=run.id).output_text == "By the next worker."
    assert list(run.steps.values())[:2] == done
    last = run.steps.last()
    assert (last.number, last.attempts) == (3, 1), "it was handed over, no worker was lost"


@pytest.mark.django_db(transaction=True)
def test_cancelling_closes_the_request_under_way_and_tells_the_tools_at_work(
    model, queue, alice, working, api
):
    told = []

    def patient(context: ToolContext) -> str:
        told.append(context.cancellation.wait(10))
        return "stopped half-way"

    model.answer_with(
        lambda request: ask(("patient", {})) if request.body.get("tools") else say("x").after(20)
    )
    tools = registry([a_tool("patient", patient, effect="once")])
    calling, using = queue(alice, 2)
    Run.objects.filter(id=using.id).update(tools=["patient"])
    working(tools)
    model.wait_for_requests(2)
    client = api(alice.token)
    for run in (calling, using):
        assert client.post(f"/api/v1/runs/{run.id}/cancel").json()["status"] == "cancelling"
    until(lambda: ended(calling, using) == 2, timeout=8)
    assert told == [True]
    shown = client.get(f"/api/v1/runs/{using.id}").json()
    assert shown["status"] == "cancelled"
    (effect,) = shown["effects"]
    assert (effect["name"], effect["effect"], effect["outcome"]) == ("patient", "once", "success")
    assert using.steps.get(name="patient").result == "stopped half-way"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("effect", "timeout"), [("pure", 30), ("idempotent", 1)])
def test_cancelling_does_not_wait_for_a_tool_that_hangs_beyond_its_time(
    *, model, queue, alice, working, effect, timeout
):
    release = threading.Event()
    tools = registry([a_tool("hang", lambda: release.wait(20), effect=effect, timeout=timeout)])
    model.script(ask(("hang", {})))
    (run,) = queue(alice, 1)
    Run.objects.filter(id=run.id).update(tools=["hang"])
    working(tools)
    until(lambda: run.steps.filter(name="hang", status="in_progress").exists())
    assert cancel_run(run_id=run.id).status == "cancelling"
    until(lambda: ended(run), timeout=6)
    release.set()
    assert Run.objects.get(id=run.id).status == "cancelled"
    assert len(model.requests) == 1


@pytest.mark.django_db(transaction=True)
def test_cancelling_a_run_that_is_just_ending_ends_it_once(model, queue, alice, working, native):
    """Whoever comes first; what was told of a run that is over does not change."""
    model.answer_with(lambda request: say("Done.").after(random.uniform(0, 0.3)))
    runs = queue(alice, 30)
    working(native)
    told = {}
    for run in random.sample(runs, len(runs)):
        time.sleep(0.01)
        told[run.id] = cancel_run(run_id=run.id).status
    until(lambda: ended(*runs) == 30)
    for run in Run.objects.all():
        ends = [kind for kind in ("run.completed", "run.cancelled") for _ in events(run, kind)]
        assert ends == [f"run.{run.status}"]
        assert told[run.id] in (run.status, "cancelling"), "an answer on its way is no success"
        assert (run.status == "completed") is (told[run.id] == "completed")


def events(run, kind):
    return run.events.filter(type=kind)


@pytest.mark.django_db(transaction=True)
def test_a_worker_keeps_one_connection_whatever_it_has_at_work(
    model, queue, alice, working, native
):
    model.answer_with(lambda request: say("Done.").after(0.5))
    runs = queue(alice, 40)
    before = connection.pool.get_stats()["pool_size"]
    working(native)
    model.wait_for_requests(40)
    assert connection.pool.get_stats()["pool_size"] <= before + 2
    until(lambda: ended(*runs) == 40)
