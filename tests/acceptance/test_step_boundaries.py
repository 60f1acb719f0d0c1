"""kill -9 at every boundary between two steps: the next worker goes on from there, and soon."""

import json
import logging
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db.models.functions import Now

from agents.models import Run, Step
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


@pytest.fixture
def orders(tmp_path):
    """The folder that says which run takes its worker down, and when."""
    folder = tmp_path / "deaths"
    folder.mkdir()
    return folder


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
def nursery(orders, tmp_path):
    with Nursery(
        AGENT_PLUGINS="tests.support.mortal_worker",
        DEATHS=str(orders),
        CHAOS_LOG=str(tmp_path / "effects"),
        BROKER_ALLOW_PRIVATE_ADDRESSES="1",
    ) as nursery:
        yield nursery


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


def until_all_have_ended(timeout=30):
    """When each run was first seen with a second worker, and which had to be settled."""
    deadline, taken, asked = time.monotonic() + timeout, {}, set()
    while Run.objects.filter(ended_at=None).exists():
        for run_id in Run.objects.filter(fence__gt=1).values_list("id", flat=True):
            taken.setdefault(run_id, time.time())
        asked |= {*Step.objects.filter(needs="outcome").values_list("run_id", flat=True)}
        settle_what_nobody_knows()
        assert time.monotonic() < deadline, list(Run.objects.values("status", "fence"))
        time.sleep(0.05)
    return taken, asked


def test_a_worker_may_be_killed_at_every_boundary(*, runs, nursery, model, orders, tmp_path):
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
    effects = Counter(map(tuple, map(json.loads, (tmp_path / "effects").read_text().splitlines())))
    for name, death in DEATHS.items():
        run = Run.objects.get(id=runs[name].id)
        assert (run.status, run.output_text) == ("completed", "All done."), name
        assert (run.id in taken) is not death.is_over, name
        assert (run.id in asked) is not death.is_known, name
        assert seen[name] == 3 + death.model_calls, name
        assert Call.objects.filter(run=str(run.id)).count() == seen[name], name
        each_effect_is_as_declared(name, death, run, effects)
        the_story_is_told_once(name, run)


def test_a_pool_child_that_is_killed_loses_no_run(*, alice, nursery, model, settings):
    """Celery's prefork: a child has runs of its own, and Celery forks another when it is gone."""
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    has_model(alice, model)
    worker = nursery.start("-P", "prefork", "-c", "1", RUNS_AT_ONCE=1)
    worker.wait_until_ready()
    model.answer_with(lambda request: CONVERSATION(request).after(0.6))
    for number in range(2):
        new_run(alice, f"run {number}")
    model.wait_for_requests(2)
    assert Run.objects.filter(status="in_progress").count() == 2, "one of them is the child's"
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
    (child,) = map(int, children.read_text().split())
    os.kill(child, signal.SIGKILL)
    killed = time.time()
    taken, _ = until_all_have_ended()
    (run_id,) = taken
    assert taken[run_id] - killed <= WITHIN
    assert {run.fence for run in Run.objects.all()} == {1, 2}
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    assert 6 <= len(model.requests) <= 7
    assert int(children.read_text()) != child


def time_of_death(order, timeout=60):
    deadline = time.monotonic() + timeout
    while not order.exists():
        assert time.monotonic() < deadline, "nobody died"
        time.sleep(0.05)
    return order.stat().st_mtime


def each_effect_is_as_declared(name, death, run, effects):
    times = {tool: [] for tool in ("look", "put", "pay")}
    for (tool, run_id, _), count in effects.items():
        if run_id == str(run.id):
            times[tool].append(count)
    assert len(times["look"]) == len(times["put"]) == 1, f"{name}: one key per call"
    assert times["look"][0] in death.looks, name
    assert times["put"][0] in death.puts, name
    assert sum(times["pay"]) == death.pays, name


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
