"""Days added up in the background, and read together with what is not added up yet."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from journal.batches import Kind, record_of, write_possible
from journal.figures.adding_up import add_up, figures_until
from journal.figures.merging import CELL
from journal.figures.sweeping import sweep
from journal.models import EVERYBODY, Call, DailyFigures, StaleDay
from journal.moments import first_id_at
from journal.selectors import Reach
from journal.statistics import Period, statistics_of

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOW = START + 10 * DAY + 5 * HOUR
MONTH = Period(START - 20 * DAY, NOW)


def many(journaled, person):
    """Calls of ten days, of which the last hours are not settled yet."""
    for hours in range(0, 10 * 24 + 5, 5):
        journaled(
            person,
            START + hours * HOUR,
            llm_name=("small", "large")[hours % 2],
            operation=("chat", None, "summary")[hours % 3],
            key_id=("k1", None)[hours % 2],
            key_source=("own", None)[hours % 2],
            status=("ok", "error", "ok", "rate_limited")[hours % 4],
            error_class=(None, "timeout", None, None)[hours % 4],
            latency_ms=hours,
            total_tokens=None if hours % 7 == 0 else hours,
            cost_micros=hours,
        )


def told(statistics):
    return [
        [(cell.names, cell.calls, cell.errors, cell.sums, cell.latencies, cell.failures)]
        for group in (
            [statistics.totals],
            statistics.by_model,
            statistics.by_operation,
            statistics.by_key,
            statistics.course,
        )
        for cell in group
    ]


@pytest.fixture
def cast(alice, bob, charlie):
    return alice, bob, charlie


@pytest.mark.parametrize("filters", [{}, {"operation": "chat"}, {"model": "small"}], ids=str)
@pytest.mark.parametrize(
    "period",
    [
        MONTH,
        Period(START + 2 * DAY, START + 5 * DAY),
        Period(START + 2 * DAY + 3 * HOUR, START + 5 * DAY + 9 * HOUR),
        Period(START + 30 * HOUR, NOW - HOUR),
    ],
    ids=["a month", "whole days", "parts of days", "to now"],
)
def test_added_up_or_live_the_figures_are_the_same(cast, journaled, period, filters):
    alice, *_ = cast
    for person in cast:
        many(journaled, person)
    reaches = [Reach(alice.tenant.id, alice.scope.id), Reach(alice.tenant.id), Reach()]
    live = [told(statistics_of(reach, period, **filters)) for reach in reaches]
    add_up(now=NOW)
    assert figures_until() == NOW - HOUR
    assert [told(statistics_of(reach, period, **filters)) for reach in reaches] == live


def test_a_month_is_read_from_the_days_and_not_from_the_calls(alice, journaled):
    many(journaled, alice)
    add_up(now=NOW)
    Call.objects.filter(id__lt=first_id_at(START + 9 * DAY)).delete()
    reach = Reach(alice.tenant.id, alice.scope.id)
    assert statistics_of(reach, MONTH).totals.calls == 49


def test_adding_up_again_counts_nothing_twice(alice, journaled):
    many(journaled, alice)
    for minutes in range(0, 600, 100):
        add_up(now=NOW - 5 * HOUR + timedelta(minutes=minutes))
    add_up(now=NOW + 5 * HOUR)
    add_up(now=NOW + 5 * HOUR)
    totals = DailyFigures.objects.filter(tenant_id=EVERYBODY).values_list("cells", flat=True)
    assert sum(cell[CELL.index("calls")] for cells in totals for cell in cells) == 49


def test_long_runs_may_stop_and_go_on(alice, journaled):
    many(journaled, alice)
    sweep(now=NOW)
    for _ in range(10 * 24 + 10):
        add_up(now=NOW, strides=1)
    assert figures_until() == NOW - HOUR
    reach = Reach(alice.tenant.id, alice.scope.id)
    assert statistics_of(reach, MONTH).totals.calls == 49


class TestACallThatComesLate:
    """From the spool of a process that was away, long after its day was added up."""

    def late(self, person, at, **columns):
        row = Call(
            id=uuid7(nanoseconds=int(at.timestamp()) * 10**9),
            scope_id=person.scope.id,
            llm_name="small",
            ts=at,
            **{"status": "ok", "total_tokens": 7, **columns},
        )
        connection.ensure_connection()
        kind = Kind.INTENT if row.status == "started" else Kind.OUTCOME
        assert write_possible(connection.connection, [record_of(kind, row)]) == [None]

    def totals(self, person):
        reaches = [Reach(person.tenant.id, person.scope.id), Reach(person.tenant.id), Reach()]
        return [statistics_of(reach, MONTH).totals.calls for reach in reaches]

    def test_is_counted_in_its_day(self, alice, bob, charlie, journaled):
        for person in (alice, bob, charlie):
            many(journaled, person)
        add_up(now=NOW)
        self.late(alice, START + 3 * DAY)
        add_up(now=NOW)
        assert self.totals(alice) == [50, 99, 148]
        assert not StaleDay.objects.exists()

    def test_is_closed_where_its_process_was_killed(self, alice, journaled):
        many(journaled, alice)
        add_up(now=NOW)
        self.late(alice, START + 3 * DAY, status="started")
        add_up(now=NOW)
        assert Call.objects.filter(status="unknown", error_class="lost").count() == 1
        assert not Call.objects.filter(status="started").exists()

    def test_of_a_day_that_is_not_added_up_is_counted_once(self, alice, journaled):
        many(journaled, alice)
        add_up(now=START + 2 * DAY)
        self.late(alice, START + 5 * DAY)
        add_up(now=START + 3 * DAY)
        assert self.totals(alice) == [50, 50, 50]
        add_up(now=NOW)
        assert self.totals(alice) == [50, 50, 50]


class TestTheSweep:
    def test_closes_what_is_open_since_long(self, alice, journaled):
        lost = journaled(alice, NOW - 2 * HOUR, status="started")
        young = journaled(alice, NOW - timedelta(minutes=59), status="started")
        done = journaled(alice, NOW - 3 * HOUR, latency_ms=5)
        sweep(now=NOW)
        lost.refresh_from_db()
        assert (lost.status, lost.error_class, lost.latency_ms) == ("unknown", "lost", None)
        young.refresh_from_db()
        assert young.status == "started"
        done.refresh_from_db()
        assert (done.status, done.error_class) == ("ok", None)

    def test_may_be_run_as_often_as_one_likes(self, alice, journaled):
        lost = journaled(alice, NOW - 2 * HOUR, status="started")
        assert sweep(now=NOW) == sweep(now=NOW) == NOW - HOUR
        lost.refresh_from_db()
        assert lost.status == "unknown"

    def test_goes_on_where_it_was(self, alice, journaled, django_assert_max_num_queries):
        journaled(alice, START)
        sweep(now=NOW)
        with django_assert_max_num_queries(9):
            sweep(now=NOW + timedelta(minutes=1))

    def test_of_an_empty_journal_is_nothing(self):
        assert sweep(now=NOW) == NOW - HOUR
