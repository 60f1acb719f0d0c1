"""POST /api/v1/runs: what is taken, what is refused, and one run per Idempotency-Key."""

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
from tenants.roles import RUNS_READ
from tenants.services.limits import set_limit
from tenants.services.tokens import create_token

HELLO = [{"role": "user", "content": "Салом 👋"}]
URL = "/api/v1/runs"


@pytest.fixture
def client(api, alice):
    return api(alice.token)


def refusal(answer):
    error = answer.json()["error"]
    assert set(error) == {"type", "code", "message", "param", "request_id"}
    return answer.status_code, error["param"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2099-03-29T02:30:00", "2099-03-29T02:30:00Z"),
        ("2099-03-29T02:30:00+02:00", "2099-03-29T00:30:00Z"),
        ("2099-03-29", "2099-03-29T00:00:00Z"),
        ("2099-03-29T02:30:00 02:00", None),
        ("2099-02-30", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-12:00", None),
        ("1e9", None),
        (1e9, None),
        (True, None),
        ([], None),
    ],
)
def test_a_moment_is_utc_unless_it_has_an_offset_and_nonsense_is_refused(client, moment, shown):
    answer = client.post(URL, {"messages": HELLO, "start_at": moment})
    cancelling = client.post(f"{URL}/cancel", {"created_before": moment})
    if shown is None:
        assert refusal(answer) == (400, "start_at")
        assert refusal(cancelling) == (400, "created_before")
    else:
        assert answer.json()["due_at"] == shown
        assert cancelling.status_code == 200


@pytest.mark.django_db
def test_a_run_is_accepted_and_shown_as_queued(client, alice):
    answer = client.post(
        URL,
        {
            "messages": HELLO,
            "tools": ["today", "calculate"],
            "max_steps": 3,
            "operation": "greeting",
            "trace_id": "t-1",
            "metadata": {"ticket": "42"},
        },
    )
    assert answer.status_code == 202
    run = Run.objects.get()
    body = answer.json()
    times = {name: body.pop(name) for name in ("created_at", "due_at", "started_at", "ended_at")}
    assert times["created_at"] is not None
    assert times["due_at"] is not None
    assert (times["started_at"], times["ended_at"]) == (None, None)
    assert body == {
        "id": str(run.id),
        "object": "run",
        "status": "queued",
        "agent": None,
        "agent_version": None,
        "thread_id": None,
        "schedule_id": None,
        "scheduled_for": None,
        "prefer": "quality",
        "output_schema": None,
        "deltas": False,
        "output": None,
        "messages": HELLO,
        "tools": ["today", "calculate"],
        "max_steps": 3,
        "max_tool_calls": None,
        "max_tokens": None,
        "max_cost": None,
        "max_seconds": None,
        "effects": None,
        "expires_at": None,
        "operation": "greeting",
        "trace_id": "t-1",
        "metadata": {"ticket": "42"},
        "output_text": None,
        "usage": None,
        "incomplete_details": None,
        "required_action": None,
        "last_error": None,
        "cancel_requested_at": None,
    }
    assert (run.tenant, run.scope, run.created_by) == (alice.tenant, alice.scope, alice.user)


@pytest.mark.django_db
def test_little_is_needed_and_null_is_left_out(client):
    body = client.post(URL, {"messages": HELLO, "agent": None, "tools": None}).json()
    assert (body["tools"], body["max_steps"], body["operation"]) == ([], 8, None)
    assert body["trace_id"] == body["id"]


TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}],
        [{"role": "developer", "content": "Be brief."}, *HELLO],
        [
            *HELLO,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**TOOL_CALL, "extra_content": {"google": {"thought": "s"}}}],
                "reasoning_content": "hm",
            },
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            *HELLO,
        ],
    ],
    ids=["parts", "image", "developer", "history"],
)
def test_conversations_of_every_shape_are_kept_as_they_came(client, messages):
    answer = client.post(URL, {"messages": messages})
    assert answer.status_code == 202, answer.content
    assert Run.objects.get().messages == messages


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [1]}, "messages.0"),
        ({"messages": [None]}, "messages.0"),
        ({"messages": [*HELLO, {"role": "asistant", "content": "hi"}]}, "messages.1.role"),
        ({"messages": [{"role": [], "content": "hi"}]}, "messages.0.role"),
        ({"messages": [{"content": "hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "x", "cost": 0}]}, "messages.0.cost"),
        ({"messages": [{"role": "assistant", "content": None}]}, "messages.0.content"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]},
            "messages.0.tool_calls",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.tool_call_id"),
        ({"messages": HELLO, "tools": "today"}, "tools"),
        ({"messages": HELLO, "tools": ["nosuch"]}, "tools"),
        ({"messages": HELLO, "tools": [{}]}, "tools.0"),
        ({"messages": HELLO, "max_steps": 0}, "max_steps"),
        ({"messages": HELLO, "max_steps": 101}, "max_steps"),
        ({"messages": HELLO, "max_steps": "many"}, "max_steps"),
        ({"messages": HELLO, "operation": "x" * 201}, "operation"),
        ({"messages": HELLO, "operation": "a\x00b"}, "operation"),
        ({"messages": HELLO, "trace_id": ""}, "trace_id"),
        ({"messages": HELLO, "metadata": {"k": "x" * 513}}, "metadata.k"),
        ({"messages": HELLO, "metadata": {"k": {}}}, "metadata.k"),
        ({"messages": HELLO, "metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ({"messages": HELLO, "metadata": []}, "metadata"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_and_nothing_is_written(client, body, param):
    assert refusal(client.post(URL, body)) == (400, param)
    assert not Run.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "raw",
    [
        b'{"messages":',
        b'{"messages": [{"role": "user", "content": "\xff"}]}',
        b"[]",
        b'"x"',
        b"",
        b'{"messages": [{"role": "user", "content": "x"}], "max_steps": NaN}',
        b"[" * 100_000,
        b'\xff\xfe{\x00"\x00m\x00"\x00:\x001\x00}\x00',
    ],
    ids=["cut", "utf8", "array", "text", "empty", "nan", "deep", "utf16"],
)
def test_a_body_that_is_no_json_object_is_refused(client, raw):
    status, _ = refusal(client.post(URL, data=raw, content_type="application/json"))
    assert status == 400
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_a_body_that_is_too_large_is_refused(client):
    messages = [{"role": "user", "content": "x" * 5_000_000}]
    status, _ = refusal(client.post(URL, {"messages": messages}))
    assert status == 413
    assert not Run.objects.exists()


FOREIGN = "11111111-1111-4111-8111-111111111111"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "field",
    [
        "run_id", "id", "tenant", "scope", "user_id", "status", "cost", "usage", "parent_run_id",
        "api_key_id", "base_url", "fence", "created_by", "idempotency_key", "lease_until",
    ],
)  # fmt: skip
def test_what_only_the_server_decides_cannot_be_sent(client, field):
    assert refusal(client.post(URL, {"messages": HELLO, field: FOREIGN})) == (400, field)
    assert not Run.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["id", "run_id", "parent_run_id"])
def test_naming_another_tenants_run_leaves_it_as_it_is(client, charlie, field):
    Run.objects.create(
        id=FOREIGN, tenant=charlie.tenant, scope=charlie.scope, messages=HELLO, trace_id="t"
    )
    before = Run.objects.values().get()
    client.post(URL, {"messages": HELLO, field: FOREIGN}, headers={"Idempotency-Key": FOREIGN})
    assert Run.objects.values().get() == before


@pytest.mark.django_db
def test_an_agent_of_another_tenant_is_not_found(api, alice, charlie):
    agent = {"slug": "helper", "name": "Helper"}
    assert api(charlie.token).post("/api/v1/agents", agent).status_code == 201
    answer = api(alice.token).post(URL, {"messages": HELLO, "agent": "helper"})
    assert refusal(answer) == (404, "agent")


@pytest.mark.django_db
def test_reading_is_not_enough_to_create(api, alice):
    token = create_token(
        scope=alice.scope, name="reader", permissions=[RUNS_READ], created_by=alice.user
    )
    status, _ = refusal(api(token.text.reveal()).post(URL, {"messages": HELLO}))
    assert status == 403


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
