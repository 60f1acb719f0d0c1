"""GET /api/v1/stats."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from llmbroker.models import CallStatus
from tests.journal.support import client_of

pytestmark = pytest.mark.django_db

NOTHING = {
    "prompt_tokens": None,
    "completion_tokens": None,
    "total_tokens": None,
    "cached_tokens": None,
    "reasoning_tokens": None,
    "cost_micros": None,
    "failures": [],
    "calls": 0,
    "errors": 0,
    "latency_p50_ms": None,
    "latency_p95_ms": None,
}
YEAR = {"since": "2026-01-01", "until": "2027-01-01"}


def stats(person, **query):
    answer = client_of(person).get("/api/v1/stats", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_without_calls_there_is_nothing_to_add_up(alice):
    assert stats(alice, **YEAR) == {
        "object": "stats",
        "level": "scope",
        "interval": "day",
        "since": "2026-01-01T00:00:00Z",
        "until": "2027-01-01T00:00:00Z",
        "totals": NOTHING,
        "by_model": [],
        "by_operation": [],
        "by_key": [],
        "course": [],
    }


def test_tokens_are_added_up_where_they_are_known(alice, journaled):
    journaled(alice, prompt_tokens=10, completion_tokens=5, total_tokens=15, cached_tokens=4)
    journaled(alice, prompt_tokens=2**31 - 1, total_tokens=2**31 - 1)
    journaled(alice)
    totals = stats(alice, **YEAR)["totals"]
    assert totals["prompt_tokens"] == 2**31 + 9
    assert totals["completion_tokens"] == 5
    assert totals["cached_tokens"] == 4
    assert totals["reasoning_tokens"] is None
    assert totals["calls"] == 3


def test_each_model_and_operation_has_figures_of_its_own_most_used_first(alice, journaled):
    for operation in ("chat", "chat", None):
        journaled(alice, llm_name="large", operation=operation, total_tokens=10)
    journaled(alice, operation="chat", total_tokens=1)
    answer = stats(alice, **YEAR)
    by_model = [(row["llm_name"], row["calls"], row["total_tokens"]) for row in answer["by_model"]]
    by_operation = [
        (row["operation"], row["calls"], row["total_tokens"]) for row in answer["by_operation"]
    ]
    assert by_model == [("large", 3, 30), ("small", 1, 1)]
    assert by_operation == [("chat", 3, 21), (None, 1, 10)]
    assert (answer["totals"]["calls"], answer["totals"]["total_tokens"]) == (4, 31)


def test_errors_are_attempts_that_failed(alice, journaled):
    for status in CallStatus:
        journaled(alice, status=status.value)
    totals = stats(alice, **YEAR)["totals"]
    assert totals["calls"] == len(CallStatus)
    assert totals["errors"] == len(CallStatus) - len({"started", "ok", "superseded"})


def test_latency_is_that_of_answers(alice, journaled):
    for latency in range(0, 1001, 100):
        journaled(alice, latency_ms=latency)
    journaled(alice, latency_ms=60_000, status="error")
    totals = stats(alice, **YEAR)["totals"]
    assert totals["latency_p50_ms"] == pytest.approx(500, rel=0.05)
    assert totals["latency_p95_ms"] == pytest.approx(1000, rel=0.05)


def test_months_add_up_to_the_year(alice, journaled):
    starts = [datetime(2026, month, 1, tzinfo=UTC) for month in range(1, 13)]
    for start in starts:
        journaled(alice, start, total_tokens=1)
        journaled(alice, start - timedelta(microseconds=1), total_tokens=100)
    ends = [*starts[1:], datetime(2027, 1, 1, tzinfo=UTC)]
    months = [
        stats(alice, since=start.isoformat(), until=end.isoformat())["totals"]["total_tokens"]
        for start, end in zip(starts, ends, strict=True)
    ]
    assert months == [101] * 11 + [1]
    assert stats(alice, **YEAR)["totals"]["total_tokens"] == sum(months)


@pytest.mark.parametrize(
    ("query", "calls"),
    [({"operation": "chat"}, 2), ({"model": "large"}, 1), ({"model": "none such"}, 0)],
)
def test_the_filters_of_calls_apply(alice, journaled, query, calls):
    journaled(alice, operation="chat")
    journaled(alice, operation="chat", llm_name="large")
    journaled(alice)
    assert stats(alice, **YEAR, **query)["totals"]["calls"] == calls


def test_unless_told_they_cover_today_and_thirty_days_before(alice, journaled):
    now = timezone.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    journaled(alice, midnight - timedelta(days=30))
    journaled(alice, midnight - timedelta(days=30, seconds=1))
    answer = stats(alice)
    assert answer["totals"]["calls"] == 1
    assert answer["until"] is None


@pytest.mark.parametrize(
    "query",
    [
        {"until": "0001-01-01"},
        {"since": "9999-12-31"},
        {"since": "0001-01-01", "until": "9999-12-31T23:59:59Z"},
    ],
)
def test_the_ends_of_time_are_no_fault(alice, journaled, query):
    journaled(alice)
    stats(alice, **query)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"since": "x"}, "since"),
        ({"since": "2026-02-02", "until": "2026-02-01"}, "until"),
        ({"status": "ok"}, "status"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(alice, query, param):
    answer = client_of(alice).get("/api/v1/stats", query)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_the_tenants_figures_are_those_of_all_its_scopes(alice, bob, charlie, journaled):
    journaled(alice)
    journaled(bob)
    journaled(charlie)
    assert stats(alice, **YEAR)["totals"]["calls"] == 1
    assert stats(alice, **YEAR, level="tenant")["totals"]["calls"] == 2
