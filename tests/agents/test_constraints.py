"""What the database itself refuses, whoever writes."""

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction

from agents.models import Agent, Event, Run, Step
from tests.support.model_server import ask, say

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def refused(write):
    with pytest.raises(IntegrityError):
        _written(write)
    return True


@transaction.atomic
def _written(write):
    write()
    connection.check_constraints()


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "resting"},
        {"status": "completed"},
        {"status": "queued", "ended_at": NOON},
        {"lease_until": NOON},
        {"status": "incomplete", "ended_at": NOON},
        {"status": "incomplete", "ended_at": NOON, "incomplete_reason": "tired"},
        {"incomplete_reason": "max_steps"},
        {"status": "failed", "ended_at": NOON},
        {"last_error": {"code": "x", "message": "y"}},
        {"status": "cancelling"},
        {"max_steps": 0},
        {"max_steps": 101},
    ],
    ids=str,
)
def test_a_run_is_always_in_a_state_that_makes_sense(start, columns):
    run = start()
    assert refused(lambda: Run.objects.filter(id=run.id).update(**columns))


def test_a_run_cannot_name_another_tenants_scope_or_agent(start, alice, charlie):
    run = start()
    agent = Agent.objects.create(tenant=charlie.tenant, slug="theirs", name="Theirs")
    for columns in ({"scope": charlie.scope}, {"agent": agent}, {"tenant": charlie.tenant}):
        assert refused(lambda columns=columns: Run.objects.filter(id=run.id).update(**columns))


def test_a_key_makes_one_run_per_scope(start):
    first = start(idempotency_key="k")
    other = start()
    assert refused(lambda: Run.objects.filter(id=other.id).update(idempotency_key="k"))
    assert Run.objects.get(idempotency_key="k") == first


def test_steps_and_events_are_numbered_once_per_run(start):
    run = start()
    step = {"run": run, "number": 1, "kind": "model_call", "status": "queued"}
    Step.objects.create(**step)
    assert refused(lambda: Step.objects.create(**step))
    assert refused(lambda: Event.objects.create(run=run, sequence_number=1, type="x"))
    assert refused(lambda: Event.objects.create(run=run, sequence_number=0, type="x"))


@pytest.mark.parametrize(
    "columns",
    [
        {"kind": "thought"},
        {"status": "paused"},
        {"kind": "model_call", "name": "today"},
        {"kind": "tool_call", "name": None},
        {"kind": "tool_call", "message": {"role": "assistant"}},
        {"ended_at": NOON},
        {"status": "completed"},
        {"status": "completed", "ended_at": NOON},
    ],
    ids=str,
)
def test_a_step_is_always_in_a_state_that_makes_sense(start, columns):
    step = {"run": start(), "number": 1, "kind": "tool_call", "status": "queued", "name": "today"}
    assert refused(lambda: Step.objects.create(**{**step, **columns}))


def test_a_deleted_run_takes_its_steps_and_events_along(model, start, advance):
    model.script(ask(("today", {})), say("Done."))
    run = advance(start(tools=["today"]))
    run.delete()
    assert not Step.objects.exists()
    assert not Event.objects.exists()
