"""kill -9 at every boundary between two steps: the next worker goes on from there, and soon."""

import json
import logging
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db.models.functions import Now

from agents.models import Run
from agents.services.creation import RunRequest, create_run
from journal.models import Call
from tests.agents.helpers import caller_of, has_model, registry, settle_what_nobody_knows
from tests.support.chaos_tools import TOOLS
from tests.support.model_server import ModelServer, ask, by_turn, say
from tests.support.nursery import Nursery

pytestmark = pytest.mark.django_db(transaction=True)

log = logging.getLogger(__name__)

WITHIN = 10.0
"""Seconds from a worker's death until another has its run."""

CONVERSATION = by_turn(
    ask(("look", {}), ("put", {})), ask(("pay", {}), ids=("call_9",)), say("All done.")
)


@dataclass(frozen=True)
class Death:
    """Where a worker dies, and what then comes on top of three model calls and three effects."""

    moment: str
    model_calls: int = 0
    looks: tuple[int, ...] = (1,)
    puts: tuple[int, ...] = (1,)
    pays: int = 1
    is_known: bool = True
    """Whether anybody can tell if ``pay``, a ``once`` tool, has run."""
    is_over: bool = False


DEATHS = {
    "claimed, nothing begun": Death("before begin model"),
    "a model call reserved, not made": Death("after begin model"),
    "a model at work": Death("asked", model_calls=1),
    "a model has answered, nothing saved": Death("before end model", model_calls=1),
    "the answer saved and tools reserved": Death("after end model"),
    "a pure tool has run": Death("ran look", looks=(2,), puts=(1, 2)),
    "an idempotent tool has run": Death("ran put", puts=(2,)),
    "one tool recorded, one at work": Death("after end look", puts=(2,)),
    "all tools of the turn recorded": Death("after end put"),
    "a once tool reserved": Death("after begin pay", pays=0, is_known=False),
    "a once tool has run": Death("ran pay", is_known=False),
    "a once tool recorded": Death("after end pay"),
    "the last answer not saved": Death("before leave as completed", model_calls=1),
    "the last answer saved": Death("after leave as completed", is_over=True),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("boundaries")


@pytest.fixture(scope="module")
def orders(folder):
    """The folder that says which run takes its worker down, and when."""
    orders = folder / "deaths"
    orders.mkdir()
    return orders


@pytest.fixture(scope="module")
def one_nursery(orders, folder, django_db_setup):
    with Nursery(
        AGENT_PLUGINS="tests.support.mortal_worker",
        DEATHS=str(orders),
        CHAOS_LOG=str(folder / "effects"),
        BROKER_ALLOW_PRIVATE_ADDRESSES="1",
    ) as nursery:
        yield nursery


@pytest.fixture
def nursery(db, one_nursery):
    yield one_nursery
    one_nursery.stop_all()


@pytest.fixture
def effects(folder):
    """``effects(run)``: how often each tool took effect, by its name and the call's key."""

    def effects(run):
        lines = map(json.loads, (folder / "effects").read_text().splitlines())
        return Counter((tool, key) for tool, run_id, key in lines if run_id == str(run.id))

    return effects


@pytest.fixture
def model(orders):
    """It tells when it is asked by the worker that is to die meanwhile."""

    def answer(request):
        if request.messages[0]["content"] == "a model at work":
            (orders / "asked").touch()
        return CONVERSATION(request).after(0.3)

    with ModelServer() as server:
        server.answer_with(answer)
        yield server


@pytest.fixture
def runs(alice, model, orders, settings):
    """A run for each place to die at; none is due."""
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    has_model(alice, model)
    runs = {}
    for name, death in DEATHS.items():
        runs[name] = new_run(alice, name, after_seconds=3600)
        Path(orders, str(runs[name].id)).write_text(death.moment)
    return runs


def new_run(person, question, **values):
    request = RunRequest(
        messages=[{"role": "user", "content": question}], tools=["look", "put", "pay"], **values
    )
    return create_run(caller=caller_of(person), request=request, available=registry(TOOLS)).run


def until_all_have_ended(timeout=30, decision="reject"):
    """When each run was first seen with a second worker, and which had to be settled."""
    deadline, taken, asked = time.monotonic() + timeout, {}, set()
    while Run.objects.filter(ended_at=None).exists():
        for run_id in Run.objects.filter(fence__gt=1).values_list("id", flat=True):
            taken.setdefault(run_id, time.time())
        asked |= settle_what_nobody_knows(decision)
        assert time.monotonic() < deadline, list(Run.objects.values("status", "fence"))
        time.sleep(0.05)
    return taken, asked


def test_a_worker_may_be_killed_at_every_boundary(*, runs, nursery, model, orders, effects):
    last, *victims = nursery.start(), *(nursery.start(RUNS_AT_ONCE=1) for _ in runs)
    for worker in (last, *victims):
        worker.wait_until_ready()
    last.signal(signal.SIGSTOP)  # or it would take runs from those who are to die of them
    Run.objects.update(due_at=Now())
    died = {run.id: time_of_death(orders / f"{run.id}.done") for run in runs.values()}
    assert all(victim.wait_until_gone() for victim in victims)
    last.signal(signal.SIGCONT)
    taken, asked = until_all_have_ended()

    slowest = max(taken[run_id] - died[run_id] for run_id in taken)
    log.info("the slowest of %d takeovers came after %.2f s", len(taken), slowest)
    assert slowest <= WITHIN
    seen = Counter(request.messages[0]["content"] for request in model.requests)
    for name, death in DEATHS.items():
        run = Run.objects.get(id=runs[name].id)
        assert (run.status, run.output_text) == ("completed", "All done."), name
        assert (run.id in taken) is not death.is_over, name
        assert (run.id in asked) is not death.is_known, name
        assert seen[name] == 3 + death.model_calls, name
        assert Call.objects.filter(run=str(run.id)).count() == seen[name], name
        each_effect_is_as_declared(name, death, effects(run))
        the_story_is_told_once(name, run)


def test_a_worker_that_is_paused_at_a_boundary_makes_no_call_when_it_wakes_up(
    *, alice, nursery, model, orders, effects, settings
):
    """What it has reserved may have been decided about by then, and done by somebody else."""
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    has_model(alice, model)
    runs = {}
    for moment in ("after begin model", "after begin pay"):
        runs[moment] = new_run(alice, moment, after_seconds=3600)
        Path(orders, str(runs[moment].id)).write_text(f"pause {moment}")
    paused = [nursery.start(RUNS_AT_ONCE=1) for _ in runs]
    for worker in paused:
        worker.wait_until_ready()
    Run.objects.update(due_at=Now())
    for run in runs.values():
        time_of_death(orders / f"{run.id}.done")
    nursery.start()
    until_all_have_ended(decision="approve")
    for worker in paused:
        worker.signal(signal.SIGCONT)
    time.sleep(1)
    for run in runs.values():
        assert any(f"run {run.id} has been taken over" in worker.output for worker in paused)
        assert effects(run)["pay", f"{run.id}:call_9"] == 1
    assert len(model.requests) == 6


def test_a_pool_child_that_is_killed_loses_no_run(*, alice, nursery, model, settings):
    """Celery's prefork: a child has runs of its own, and Celery forks another when it is gone."""
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    has_model(alice, model)
    worker = nursery.start("-P", "prefork", "-c", "1", RUNS_AT_ONCE=1)
    worker.wait_until_ready()
    go_on = threading.Event()
    model.answer_with(lambda request: CONVERSATION(request).behind(go_on))
    for number in range(2):
        new_run(alice, f"run {number}")
    model.wait_for_requests(2)  # one is of the worker itself, which takes one run at a time
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
    (child,) = map(int, children.read_text().split())
    os.kill(child, signal.SIGKILL)
    killed = time.time()
    go_on.set()
    taken, _ = until_all_have_ended()
    (run_id,) = taken
    assert taken[run_id] - killed <= WITHIN
    assert {run.fence for run in Run.objects.all()} == {1, 2}
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    assert len(model.requests) == 6 + 1
    assert int(children.read_text()) != child


def time_of_death(order, timeout=60):
    deadline = time.monotonic() + timeout
    while not order.exists():
        assert time.monotonic() < deadline, "nobody died"
        time.sleep(0.05)
    return order.stat().st_mtime


def each_effect_is_as_declared(name, death, times):
    by_tool = {tool: count for (tool, _), count in times.items()}
    assert len(by_tool) == len(times), f"{name}: one key per call, however often it ran"
    assert by_tool["look"] in death.looks, name
    assert by_tool["put"] in death.puts, name
    assert by_tool.get("pay", 0) == death.pays, name


def the_story_is_told_once(name, run):
    assert list(run.steps.values_list("name", "status")) == [
        (None, "completed"),
        ("look", "completed"),
        ("put", "completed"),
        (None, "completed"),
        ("pay", "completed" if DEATHS[name].is_known else "failed"),
        (None, "completed"),
    ], name
    numbers = list(run.events.values_list("sequence_number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1)), name
    kinds = Counter(run.events.values_list("type", flat=True))
    assert kinds["run.completed"] == 1, name
    assert kinds["tool_call.output"] == 3, name
