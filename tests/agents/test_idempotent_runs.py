"""POST /api/v1/runs with an Idempotency-Key: one run per key, however often it is asked for."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier
from uuid import UUID

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from agents.models import Run
from agents.services.dispatch import claim
from tenants import idempotency
from tenants.models import Limit
from tenants.services.limits import set_limit

HELLO = [{"role": "user", "content": "Салом 👋"}]
URL = "/api/v1/runs"


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.mark.django_db
def test_the_same_key_and_body_give_the_same_run(client):
    body = {"messages": HELLO, "metadata": {"a": "1", "b": "2"}}
    headers = {"Idempotency-Key": "k1"}
    first = client.post(URL, body, headers=headers)
    again = client.post(URL, dict(reversed(body.items())), headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["id"] == first.json()["id"]
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_the_same_key_with_another_body_is_a_conflict(client):
    client.post(URL, {"messages": HELLO}, headers={"Idempotency-Key": "k1"})
    answer = client.post(
        URL, {"messages": HELLO, "max_steps": 3}, headers={"Idempotency-Key": "k1"}
    )
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "idempotency_conflict"
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_key_is_its_scopes_own(api, alice, bob, charlie):
    ids = {
        api(person.token)
        .post(URL, {"messages": HELLO}, headers={"Idempotency-Key": "k1"})
        .json()["id"]
        for person in (alice, bob, charlie)
    }
    assert len(ids) == 3


@pytest.mark.django_db
def test_a_refused_request_does_not_use_its_key_up(client):
    headers = {"Idempotency-Key": "k1"}
    assert client.post(URL, {"messages": []}, headers=headers).status_code == 400
    assert client.post(URL, {"messages": HELLO}, headers=headers).status_code == 202


@pytest.mark.django_db
def test_a_request_that_fails_on_our_side_does_not_use_its_key_up(client):
    def fail(execute, sql, *rest):
        if "INSERT INTO agents_event" in sql:  # the run itself is written by then
            raise RuntimeError("out of luck")
        return execute(sql, *rest)

    headers = {"Idempotency-Key": "k1"}
    client.raise_request_exception = False
    with connection.execute_wrapper(fail):
        assert client.post(URL, {"messages": HELLO}, headers=headers).status_code == 500
    assert not Run.objects.exists()
    answer = client.post(URL, {"messages": HELLO}, headers=headers)
    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer


@pytest.mark.django_db
def test_a_key_is_its_runs_for_as_long_as_that_is_kept(client):
    headers = {"Idempotency-Key": "k1"}
    first = client.post(URL, {"messages": HELLO}, headers=headers).json()["id"]
    claim(UUID(first))
    again = client.post(URL, {"messages": HELLO}, headers=headers).json()
    assert (again["id"], again["status"]) == (first, "in_progress")
    Run.objects.update(created_at=timezone.now() - timedelta(days=2))
    later = client.post(URL, {"messages": HELLO}, headers=headers).json()
    assert later["id"] == first


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "x" * 300, "a\tb", "a\nb", "ключ"])
def test_a_key_that_cannot_be_one_is_refused(client, key):
    answer = client.post(URL, {"messages": HELLO}, headers={"Idempotency-Key": key})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_idempotency_key"


@pytest.fixture
def ten_at_once(api, alice):
    """``ten_at_once(url, body)``: the answers to ten equal requests with one key."""
    ready = Barrier(10)

    def ten_at_once(url=URL, body=None):
        def post(_):
            try:
                ready.wait(10)
                headers = {"Idempotency-Key": "k1"}
                return api(alice.token).post(url, body or {"messages": HELLO}, headers=headers)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(10) as pool:
            return list(pool.map(post, range(10)))

    return ten_at_once


def answer_with_one_run(answers):
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer for answer in answers) == 1
    return True


@pytest.mark.django_db(transaction=True)
def test_ten_requests_at_once_with_one_key_make_one_run(ten_at_once):
    assert answer_with_one_run(ten_at_once())
    assert Run.objects.get().events.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_run_of_a_key_does_not_count_against_those_who_ask_for_it_again(ten_at_once, alice):
    set_limit(tenant=alice.tenant, kind=Limit.Kind.CONCURRENT_RUNS, value=Decimal(1))
    assert answer_with_one_run(ten_at_once())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("strategy", ["reject", "enqueue", "interrupt"])
def test_the_run_of_a_key_is_not_in_its_own_way_in_a_thread(client, ten_at_once, strategy):
    thread = client.post("/api/v1/threads", {}).json()["id"]
    url, body = f"/api/v1/threads/{thread}/runs", {"messages": HELLO}
    assert answer_with_one_run(ten_at_once(url, {**body, "multitask_strategy": strategy}))
    assert Run.objects.get().status == "queued"


@pytest.mark.django_db(transaction=True)
def test_a_request_that_finds_its_key_busy_for_too_long_is_told_so(client, alice, monkeypatch):
    monkeypatch.setattr(idempotency, "PATIENCE", "50ms")
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        idempotency.hold_key(alice.scope, "k1")

        def post():
            try:
                return client.post(URL, {"messages": HELLO}, headers={"Idempotency-Key": "k1"})
            finally:
                connections.close_all()

        answer = pool.submit(post).result(10)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "idempotency_in_progress")
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_a_request_is_answered_again_even_when_its_agent_has_gone(client):
    agent = client.post("/api/v1/agents", {"slug": "helper", "name": "Helper"}).json()
    body, headers = {"messages": HELLO, "agent": "helper"}, {"Idempotency-Key": "k1"}
    first = client.post(URL, body, headers=headers).json()
    client.delete(f"/api/v1/agents/{agent['id']}")
    again = client.post(URL, body, headers=headers)
    assert (again.status_code, again.json()["id"]) == (202, first["id"])
