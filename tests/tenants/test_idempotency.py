"""Idempotency-Key on requests that create: one thing per scope and key, races included."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from agents.models import Agent, Thread, WebhookEndpoint
from tenants.idempotency import forget_expired
from tenants.models import AccessToken, IdempotentRequest, ProviderKey
from tests.isolation.test_walk import API

pytestmark = pytest.mark.django_db

AGENTS = "/api/v1/agents"
HELPER = {"slug": "helper", "name": "Helper"}
KEY = {"Idempotency-Key": "k-1"}

# What a POST does there is no creation, or is one whose row itself holds the key.
OF_THEIR_OWN = {
    "/api/v1/runs": "a run holds its key as long as it is kept",
    "/api/v1/threads/<uuid:thread_id>/runs": "as /runs",
}
NOT_CREATING = {
    "cancel", "secret", "refresh", "render", "replay", "restore", "check", "approvals",
    "submit_tool_outputs",
}  # fmt: skip


@pytest.fixture
def client(api, alice):
    return api(alice.token)


def test_every_route_that_creates_heeds_the_header():
    missing = []
    for path, entry in API:
        post = getattr(entry.callback.view_class, "post", None)
        if post is None or path in OF_THEIR_OWN or path.rsplit("/", 1)[1] in NOT_CREATING:
            continue
        if not getattr(post, "is_idempotent", False):
            missing.append(path)
    assert missing == []


def test_a_repeated_request_gets_the_same_answer_and_creates_nothing(client):
    first = client.post(AGENTS, HELPER, headers=KEY)
    again = client.post(AGENTS, HELPER, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again["Idempotent-Replayed"] == "true"
    assert Agent.objects.count() == 1


def test_another_request_with_the_key_is_a_conflict(client):
    client.post(AGENTS, HELPER, headers=KEY)
    for path, body in ((AGENTS, {**HELPER, "name": "x"}), ("/api/v1/threads", HELPER)):
        answer = client.post(path, body, headers=KEY)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "idempotency_conflict"


def test_a_key_belongs_to_its_scope(client, api, charlie):
    mine = client.post(AGENTS, HELPER, headers=KEY).json()
    theirs = api(charlie.token).post(AGENTS, {**HELPER, "name": "Other"}, headers=KEY)
    assert theirs.status_code == 201
    assert theirs.json()["id"] != mine["id"]


def test_after_a_failure_the_key_may_be_used_again(client):
    wrong = client.post(AGENTS, {**HELPER, "tools": ["no-such"]}, headers=KEY)
    assert wrong.status_code == 400
    assert client.post(AGENTS, HELPER, headers=KEY).status_code == 201


def test_a_key_is_forgotten_after_a_day(client):
    client.post("/api/v1/threads", {}, headers=KEY)
    IdempotentRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    again = client.post("/api/v1/threads", {}, headers=KEY)
    assert "Idempotent-Replayed" not in again
    assert forget_expired() == 0
    IdempotentRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert forget_expired() == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_is_none_is_refused(client, key):
    answer = client.post(AGENTS, HELPER, headers={"Idempotency-Key": key})
    assert answer.json()["error"]["code"] == "invalid_idempotency_key"


def test_secrets_are_neither_stored_nor_shown_again(client):
    value = "sk-live-marker-8c1f0d2b7a44"
    bodies = {
        "/api/v1/tokens": {"name": "t", "permissions": ["runs:read"]},
        "/api/v1/webhook_endpoints": {"url": "https://hooks.example.test/"},
        "/api/v1/keys": {"ref": "A_KEY", "value": value},
    }
    secrets = [value]
    for number, (path, body) in enumerate(bodies.items()):
        headers = {"Idempotency-Key": f"k-{number}"}
        first = client.post(path, body, headers=headers).json()
        again = client.post(path, body, headers=headers).json()
        shown = [first[name] for name in ("token", "secret") if name in first]
        secrets += shown
        assert again == {**first, **{name: None for name in first if first[name] in shown}}
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(t::text, ' ') FROM tenants_idempotentrequest t")
        stored = cursor.fetchone()[0]
    assert len(secrets) == 3
    assert not [secret for secret in secrets if secret in stored]
    assert (AccessToken.objects.filter(name="t").count(), WebhookEndpoint.objects.count()) == (1, 1)
    assert ProviderKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_ten_at_once_one_creates_and_the_others_repeat_its_answer(api, alice):
    together = threading.Barrier(10)

    def one(_):
        together.wait()
        try:
            return api(alice.token).post("/api/v1/threads", {}, headers=KEY)
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(one, range(10)))
    created = [answer.json()["id"] for answer in answers if answer.status_code == 201]
    busy = [answer.json()["error"]["code"] for answer in answers if answer.status_code != 201]
    assert set(busy) <= {"idempotency_in_progress"}  # on a machine that is slow as well
    assert len(set(created)) == Thread.objects.count() == 1
