"""POST /api/v1/ratings."""

import json
from uuid import uuid4

import pytest

from journal.models import Rating
from tenants.roles import JOURNAL_READ
from tests.journal.support import client_of

pytestmark = pytest.mark.django_db


def rate(person, body):
    content = json.dumps(body)  # with escapes: half a surrogate pair has no UTF-8
    return client_of(person).post("/api/v1/ratings", content, content_type="application/json")


def test_a_call_is_rated_by_its_id(alice, journaled):
    call = journaled(alice)
    answer = rate(alice, {"call_id": str(call.id), "score": 0.75})
    assert answer.status_code == 201
    rating = Rating.objects.get()
    assert answer.json() == {
        "object": "rating",
        "id": str(rating.id),
        "call_id": str(call.id),
        "score": 0.75,
        "created_at": rating.created_at.isoformat().replace("+00:00", "Z"),
    }
    assert rating.created_by == alice.user


def test_a_trace_is_rated_by_its_newest_answer(alice, journaled):
    journaled(alice, trace_id="t")
    newest = journaled(alice, trace_id="t")
    journaled(alice, trace_id="t", status="error")
    answer = rate(alice, {"trace_id": "t", "score": 1})
    assert answer.json()["call_id"] == str(newest.id)


def test_ratings_add_up_and_the_newest_counts(alice, journaled):
    call = journaled(alice)
    for score in (0, 1, 0.5):
        rate(alice, {"call_id": str(call.id), "score": score})
    assert Rating.objects.count() == 3
    assert client_of(alice).get(f"/api/v1/calls/{call.id}").json()["score"] == 0.5


@pytest.mark.parametrize("score", [-0.1, 1.1, "NaN", "0.5", True, None, []])
def test_a_score_is_a_number_from_0_to_1(alice, journaled, score):
    answer = rate(alice, {"call_id": str(journaled(alice).id), "score": score})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "score")
    assert not Rating.objects.exists()


def test_a_score_beyond_every_float_is_refused(alice, journaled):
    answer = rate(alice, {"call_id": str(journaled(alice).id), "score": 10**400})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"call_id": str(uuid4()), "trace_id": "t"},
        {"call_id": "chatcmpl-1"},
        {"trace_id": "a\x00"},
        {"trace_id": "\ud83d"},
        {"trace_id": ""},
        {"call_id": str(uuid4()), "scope_id": str(uuid4())},
    ],
)
def test_it_names_either_a_call_or_a_trace(alice, names):
    assert rate(alice, {"score": 0.5, **names}).status_code == 400


@pytest.mark.parametrize("names", [{"call_id": str(uuid4())}, {"trace_id": "none such"}])
def test_what_was_never_called_is_not_found(alice, names):
    assert rate(alice, {"score": 0.5, **names}).status_code == 404


def test_a_failed_call_has_no_answer_to_rate(alice, journaled):
    call = journaled(alice, status="error")
    answer = rate(alice, {"call_id": str(call.id), "score": 0.5})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_call")


def test_the_whole_tenants_reader_still_rates_only_the_own_scope(alice, bob, journaled):
    call = journaled(bob)
    assert rate(alice, {"call_id": str(call.id), "score": 0.5}).status_code == 404


def test_reading_alone_is_not_enough(alice, journaled):
    body = {"call_id": str(journaled(alice).id), "score": 0.5}
    answer = client_of(alice, JOURNAL_READ).post("/api/v1/ratings", body, format="json")
    assert answer.status_code == 403
