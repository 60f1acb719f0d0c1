"""GET /api/v1/calls and /api/v1/calls/{id}."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from journal.models import Rating
from tenants.roles import ADMIN, ALL, JOURNAL_READ
from tests.journal.support import NOON, client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(alice):
    return client_of(alice)


def listed(client, **query):
    answer = client.get("/api/v1/calls", query)
    assert answer.status_code == 200, answer.content
    return [call["id"] for call in answer.json()["data"]]


def ids(calls):
    return [str(call.id) for call in calls]


def refusal(answer):
    error = answer.json()["error"]
    assert set(error) == {"type", "code", "message", "param", "request_id"}
    return answer.status_code, error["param"]


def test_a_call_tells_what_was_asked_of_whom_and_how_it_went(api, alice, journaled):
    call = journaled(
        alice,
        operation="сводка",
        trace_id="t",
        model="small-1",
        model_answered="small-1-2026",
        base_url="https://api.example/v1",
        key_id="k",
        key_source="shared",
        http_status=200,
        latency_ms=900,
        prompt_tokens=3,
        total_tokens=3,
        streamed=True,
        first_token_ms=80,
    )
    assert api.get(f"/api/v1/calls/{call.id}").json() == {
        "object": "call",
        "id": str(call.id),
        "scope_id": str(alice.scope.id),
        "operation": "сводка",
        "trace_id": "t",
        "llm_name": "small",
        "base_url": "https://api.example/v1",
        "model": "small-1",
        "model_answered": "small-1-2026",
        "key_id": "k",
        "key_source": "shared",
        "ts": "2026-03-01T12:00:00Z",
        "status": "ok",
        "http_status": 200,
        "streamed": True,
        "first_token_ms": 80,
        "latency_ms": 900,
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": None,
            "total_tokens": 3,
            "cached_tokens": None,
            "reasoning_tokens": None,
        },
        "score": None,
        "cost_micros": None,
        "price": None,
        "run": None,
        "step": None,
        "provider_id": None,
        "error_class": None,
        "error_detail": None,
        "cooldown_until": None,
    }


def test_a_call_shows_its_newest_rating(api, alice, journaled):
    call = journaled(alice)
    for score in (0.1, 0.9):
        Rating.objects.create(
            call=call, scope_id=call.scope_id, tenant_id=call.tenant_id, score=score
        )
    assert api.get(f"/api/v1/calls/{call.id}").json()["score"] == 0.9


def test_an_unknown_call_is_not_found(api):
    assert refusal(api.get(f"/api/v1/calls/{uuid4()}")) == (404, None)


class TestTheList:
    def test_is_read_page_by_page_without_gap_or_repeat(self, api, alice, journaled):
        calls = [journaled(alice, NOON + timedelta(milliseconds=n // 3)) for n in range(7)]
        newest_first = ids(sorted(calls, key=lambda call: call.id, reverse=True))
        read, after = [], {}
        for has_more in (True, True, True, False):
            page = api.get("/api/v1/calls", {"limit": 2, **after}).json()
            assert (page["object"], page["has_more"]) == ("list", has_more)
            read += [call["id"] for call in page["data"]]
            after = {"after": page["next_after"]}
        assert read == newest_first
        assert page["next_after"] is None

    def test_takes_one_query_whatever_its_length(self, api, alice, journaled):
        for _ in range(5):
            journaled(alice)
        with CaptureQueriesContext(connection) as queries:
            listed(api)
        assert len([one for one in queries if "journal_call" in one["sql"]]) == 1

    @pytest.mark.parametrize(
        ("query", "columns"),
        [
            ({"operation": "chat"}, {"operation": "chat"}),
            ({"operation": "чат 🌍"}, {"operation": "чат 🌍"}),
            ({"trace_id": "t"}, {"trace_id": "t"}),
            ({"model": "large"}, {"llm_name": "large"}),
            ({"model": "large-1"}, {"model": "large-1"}),
            ({"status": "rate_limited"}, {"status": "rate_limited"}),
            ({"run": "r1"}, {"run": "r1", "step": 2}),
            ({"call_id": None}, {}),
            (
                {"operation": "chat", "trace_id": "t", "status": "error"},
                {"operation": "chat", "trace_id": "t", "status": "error"},
            ),
        ],
    )
    def test_holds_what_matches_the_filters(self, api, alice, journaled, query, columns):
        journaled(alice)
        wanted = journaled(alice, **columns)
        query = {name: text or str(wanted.id) for name, text in query.items()}
        assert listed(api, **query) == [str(wanted.id)]

    @pytest.mark.parametrize(
        ("query", "param"),
        [
            ({"status": "fine"}, "status"),
            ({"level": "world"}, "level"),
            ({"limit": "0"}, "limit"),
            ({"limit": "201"}, "limit"),
            ({"limit": "many"}, "limit"),
            ({"after": "yesterday"}, "after"),
            ({"operation": "a\x00b"}, "operation"),
            ({"operatoin": "chat"}, "operatoin"),
            ({"since": "2026-02-30"}, "since"),
            ({"since": "1e9"}, "since"),
            ({"since": "2026-03-01T00:00:00 02:00"}, "since"),
            ({"until": "soon"}, "until"),
            ({"since": "2026-04-01", "until": "2026-03-01"}, "until"),
        ],
    )
    def test_refuses_a_filter_that_makes_no_sense(self, api, query, param):
        assert refusal(api.get("/api/v1/calls", query)) == (400, param)


class TestAPeriod:
    """Half open, and UTC unless an offset is given."""

    @pytest.fixture
    def rows(self, alice, journaled):
        moments = {
            "february": datetime(2026, 2, 28, 22, 30, tzinfo=UTC),
            "last of march": datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC),
            "first of april": datetime(2026, 4, 1, tzinfo=UTC),
        }
        return {str(journaled(alice, at).id): name for name, at in moments.items()}

    @pytest.mark.parametrize(
        ("since", "until", "found"),
        [
            ("2026-03-01", "2026-04-01", ["last of march"]),
            ("2026-04-01", "2026-05-01", ["first of april"]),
            ("2026-02-01", "2026-03-01", ["february"]),
            ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00", ["last of march"]),
            ("2026-03-01T00:00:00+02:00", "2026-04-01T00:00:00+02:00", ["february"]),
            ("2026-04-01T00:00:00.000001", "2026-05-01", []),
            ("2026-04-01", "2026-04-01", []),
            (
                "0001-01-01",
                "9999-12-31T23:59:59Z",
                ["first of april", "last of march", "february"],
            ),
            ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", None),
        ],
    )
    def test_holds_its_first_moment_and_not_its_last(self, api, rows, since, until, found):
        answer = api.get("/api/v1/calls", {"since": since, "until": until})
        if found is None:
            assert answer.status_code in {200, 400}
        else:
            assert [rows[call["id"]] for call in answer.json()["data"]] == found

    def test_loses_no_call_whose_id_was_made_a_moment_later(self, api, alice, journaled):
        call = journaled(alice, datetime(2026, 4, 1, tzinfo=UTC))
        type(call).objects.filter(id=call.id).delete()
        call.ts -= timedelta(microseconds=1)
        call.save(force_insert=True)
        assert listed(api, since="2026-03-01", until="2026-04-01") == [str(call.id)]
        assert listed(api, since="2026-04-01", until="2026-05-01") == []

    def test_is_answered_with_an_offset(self, api, alice, journaled):
        journaled(alice, NOON.astimezone(timezone(timedelta(hours=5))))
        (call,) = api.get("/api/v1/calls").json()["data"]
        assert call["ts"] == "2026-03-01T12:00:00Z"


class TestTheLevel:
    def test_is_the_callers_own_scope(self, alice, bob, journaled):
        mine, _ = journaled(alice), journaled(bob)
        assert listed(client_of(alice)) == [str(mine.id)]

    def test_tenant_holds_all_its_scopes(self, alice, bob, charlie, journaled):
        calls = [journaled(bob), journaled(alice)]
        journaled(charlie)
        assert listed(client_of(alice), level="tenant") == ids(reversed(calls))
        answer = client_of(alice).get(f"/api/v1/calls/{calls[0].id}", {"level": "tenant"})
        assert answer.status_code == 200

    @pytest.mark.parametrize("path", ["calls", "calls/{id}", "stats"])
    def test_tenant_needs_the_permission_admin(self, alice, bob, journaled, path):
        url = f"/api/v1/{path.format(id=journaled(alice).id)}"
        everything_else = client_of(alice, *(ALL - {ADMIN}))
        assert everything_else.get(url, {"level": "tenant"}).status_code == 403
        assert client_of(bob).get(url, {"level": "tenant"}).status_code == 403
        assert (
            client_of(alice, ADMIN, JOURNAL_READ).get(url, {"level": "tenant"}).status_code == 200
        )


class TestEverybodysCalls:
    def test_are_not_for_a_token_whoever_made_it(self, alice):
        alice.user.is_superuser = True
        alice.user.save()
        answer = client_of(alice).get("/api/v1/calls", {"level": "installation"})
        assert answer.status_code == 403

    def test_are_for_the_operator_who_is_signed_in(self, client, alice, charlie, journaled):
        calls = {str(journaled(person).id) for person in (alice, charlie)}
        query = {"level": "installation"}
        client.force_login(alice.user)
        assert client.get("/api/v1/calls", query).status_code == 403
        alice.user.is_superuser = True
        alice.user.save()
        client.force_login(alice.user)
        answer = client.get("/api/v1/calls", query).json()
        assert {call["id"] for call in answer["data"]} == calls
