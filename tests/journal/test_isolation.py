"""Every route of the journal, called with a token of one tenant and the ids of another."""

import pytest
from rest_framework.test import APIClient

from journal.models import Rating
from journal.payloads import keep_payload
from journal.urls import urlpatterns
from tenants.roles import CHAT_WRITE, JOURNAL_READ, RUNS_READ, RUNS_WRITE
from tests.journal.support import client_of

pytestmark = pytest.mark.django_db

# name of the route, method, path, body: {call} and {trace} are Alice's.
ROUTES = [
    ("calls", "get", "/api/v1/calls", None),
    ("calls", "get", "/api/v1/calls?level=tenant", None),
    ("calls", "get", "/api/v1/calls?trace_id={trace}", None),
    ("calls", "get", "/api/v1/calls?level=tenant&trace_id={trace}", None),
    ("calls", "get", "/api/v1/calls?after={after}", None),
    ("calls-csv", "get", "/api/v1/calls.csv", None),
    ("calls-csv", "get", "/api/v1/calls.csv?level=tenant", None),
    ("calls-jsonl", "get", "/api/v1/calls.jsonl?level=tenant&trace_id={trace}", None),
    ("payload", "get", "/api/v1/calls/{call}/payload", None),
    ("payload", "get", "/api/v1/calls/{call}/payload?level=tenant", None),
    ("call", "get", "/api/v1/calls/{call}", None),
    ("call", "get", "/api/v1/calls/{call}?level=tenant", None),
    ("ratings", "post", "/api/v1/ratings", {"call_id": "{call}", "score": 0.0}),
    ("ratings", "post", "/api/v1/ratings", {"trace_id": "{trace}", "score": 0.0}),
    ("stats", "get", "/api/v1/stats?since=2026-01-01", None),
    ("stats", "get", "/api/v1/stats?since=2026-01-01&level=tenant", None),
]
ALICES_WORDS = {"messages": [{"role": "user", "content": "alices-words"}], "answer": {}}
NEEDED = {"get": JOURNAL_READ, "post": CHAT_WRITE}


@pytest.fixture(params=ROUTES, ids=lambda route: " ".join(map(str, route[1:])))
def request_with_alices_ids(request, alice, journaled):
    _, method, path, body = request.param
    call = journaled(
        alice,
        trace_id="alices-trace",
        operation="alices-operation",
        llm_name="alices-model",
        error_detail="alices-detail",
    )
    keep_payload(scope_id=alice.scope.id, call_id=call.id, said=ALICES_WORDS)
    ids = {"call": call.id, "trace": call.trace_id, "after": "f" * 32}
    body = body and {
        name: value.format(**ids) if isinstance(value, str) else value
        for name, value in body.items()
    }

    def send(client):
        return getattr(client, method)(path.format(**ids), body, format="json")

    send.method = method
    return send


def test_the_table_names_every_route():
    assert {route[0] for route in ROUTES} == {pattern.name for pattern in urlpatterns}


def test_the_owner_gets_what_the_intruder_is_denied(request_with_alices_ids, alice):
    answer = request_with_alices_ids(client_of(alice))
    assert answer.status_code in {200, 201}
    said = answer.getvalue()
    assert b"alices-" in said or answer.json().get("object") in {"rating", "list"}


def test_another_tenant_learns_and_changes_nothing(request_with_alices_ids, charlie):
    answer = request_with_alices_ids(client_of(charlie))
    if answer.streaming:
        assert b"alices-" not in answer.getvalue()
        return
    body = answer.json()
    if answer.status_code == 200:
        assert body.get("data", []) == []
        assert body.get("totals", {"calls": 0})["calls"] == 0
    else:
        assert answer.status_code == 404
    assert b"alices-" not in answer.content
    assert not Rating.objects.exists()


def test_a_colleague_learns_and_changes_nothing(request_with_alices_ids, bob):
    answer = request_with_alices_ids(client_of(bob))
    assert answer.status_code in {200, 403, 404}
    assert b"alices-" not in answer.getvalue()
    if answer.streaming:
        return
    assert answer.json().get("totals", {"calls": 0})["calls"] == 0
    assert not Rating.objects.exists()


def test_without_a_token_nobody_is_anybody(request_with_alices_ids):
    assert request_with_alices_ids(APIClient()).status_code == 401


def test_a_token_without_the_permission_is_refused(request_with_alices_ids, alice):
    other = {JOURNAL_READ, CHAT_WRITE, RUNS_READ, RUNS_WRITE} - {
        NEEDED[request_with_alices_ids.method]
    }
    assert request_with_alices_ids(client_of(alice, *other)).status_code == 403
    assert not Rating.objects.exists()
