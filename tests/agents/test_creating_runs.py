"""POST /api/v1/runs: what is taken and what is refused."""

import pytest

from agents.models import Run
from tenants.roles import RUNS_READ
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
