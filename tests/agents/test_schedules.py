"""Schedules: the right moments, one run each, none that pile up."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from agents.cron import next_tick
from agents.models import Run, Schedule
from agents.services.schedules import fire_due
from agents.tool_sources.catalog import TenantTools
from tenants.context import all_tenants
from tenants.models import Membership

pytestmark = pytest.mark.django_db

PATH = "/api/v1/schedules"
DAILY = {
    "name": "Every morning",
    "cron": "0 9 * * *",
    "timezone": "Asia/Tashkent",
    "request": {"messages": [{"role": "user", "content": "What is new?"}]},
}
fire = partial(fire_due, available=TenantTools)


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def schedule(client):
    answer = client.post(PATH, DAILY)
    assert answer.status_code == 201, answer.content
    return Schedule.objects.get(id=answer.json()["id"])


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "after", "then"),
    [
        ("0 9 * * *", "Asia/Tashkent", "2026-06-01T03:59", "2026-06-01T04:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00"),  # skipped hour
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T00:30"),  # repeated hour
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("*/20 * * * *", "UTC", "2026-06-01T00:20", "2026-06-01T00:40"),
    ],
)
def test_ticks_follow_the_clocks_of_their_time_zone(cron, zone, after, then):
    assert next_tick(cron, zone, after=at(after)) == at(then)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"cron": "every day"}, "cron"),
        ({"cron": "* * * * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"request": {}}, "request.messages"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(client, changes, param):
    answer = client.post(PATH, {**DAILY, **changes})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_a_due_schedule_creates_its_run_once_and_waits_for_the_next_tick(schedule):
    tick = schedule.next_run_at
    assert fire(now=tick - timedelta(seconds=1)) == 0
    assert fire(now=tick) == 1
    assert fire(now=tick) == 0
    run = Run.objects.get()
    assert (run.schedule, run.scheduled_for, run.scope_id) == (schedule, tick, schedule.scope_id)
    assert run.messages == DAILY["request"]["messages"]
    schedule.refresh_from_db()
    assert (schedule.next_run_at, schedule.last_run_at) == (tick + timedelta(days=1), tick)


def test_missed_ticks_do_not_pile_up(schedule):
    late = schedule.next_run_at + timedelta(days=10, hours=1)
    fire(now=late)
    fire(now=late)
    assert Run.objects.count() == 1
    schedule.refresh_from_db()
    assert late < schedule.next_run_at < late + timedelta(days=1)


def test_a_tick_is_skipped_while_the_run_before_it_is_not_over(client, schedule):
    fire(now=schedule.next_run_at)
    fire(now=schedule.next_run_at + timedelta(days=1))
    shown = client.get(f"{PATH}/{schedule.id}").json()
    assert (Run.objects.count(), shown["last_problem"][:7]) == (1, "Skipped")
    client.patch(f"{PATH}/{schedule.id}", {"allow_overlap": True})
    fire(now=schedule.next_run_at + timedelta(days=2))
    assert Run.objects.count() == 2


def test_a_paused_schedule_does_nothing_and_makes_up_for_nothing(client, schedule):
    client.patch(f"{PATH}/{schedule.id}", {"enabled": False})
    fire(now=schedule.next_run_at)
    Schedule.objects.update(next_run_at=timezone.now() - timedelta(days=3))
    client.patch(f"{PATH}/{schedule.id}", {"enabled": True})
    fire(now=timezone.now())
    assert not Run.objects.exists()


def test_what_cannot_be_run_is_said_and_stops_no_other(client, schedule):
    client.post(PATH, {**DAILY, "name": "Another"})
    Schedule.objects.filter(id=schedule.id).update(
        request={**DAILY["request"], "tools": ["no-such"]}
    )
    fire(now=schedule.next_run_at)
    assert Run.objects.get().schedule.name == "Another"
    assert "no-such" in client.get(f"{PATH}/{schedule.id}").json()["last_problem"]


def test_a_person_s_schedules_end_with_their_membership(api, bob):
    api(bob.token).post(PATH, DAILY)
    Membership.objects.filter(user=bob.user).delete()
    fire(now=Schedule.objects.get().next_run_at)
    assert not Schedule.objects.get().enabled
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_several_beats_at_once_create_one_run_per_tick(client, schedule):
    for number in range(5):
        client.post(PATH, {**DAILY, "name": f"s{number}"})
    together = threading.Barrier(4)

    def beat():
        together.wait()
        try:
            with all_tenants("tests", routine=True):
                return fire(now=schedule.next_run_at)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sum(each.result() for each in [pool.submit(beat) for _ in range(4)]) == 6
    assert Run.objects.count() == 6


def test_a_schedule_is_its_scopes_alone(schedule, api, bob, charlie):
    for token in (bob.token, charlie.token):
        assert api(token).get(f"{PATH}/{schedule.id}").status_code == 404
        assert api(token).get(PATH).json()["data"] == []
