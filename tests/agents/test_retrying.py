"""A run that is over, done again over the API from one of its model calls."""

import pytest

from agents.models import Run
from tenants.models import AuditEntry
from tenants.services.tokens import create_token
from tests.support.model_server import ask, fail, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def finished(model, start, advance):
    """Asked, calculated (steps 1 and 2), answered (step 3)."""
    model.script(ask(("calculate", {"expression": "6 * 7"})), say("42"))
    return advance(start("What is 6 × 7?", tools=["calculate"], metadata={"ticket": "7"}))


@pytest.fixture
def tokens(alice):
    """``tokens("runs:read")``: a token of alice's scope that may do that much."""
    return lambda *permissions: create_token(
        scope=alice.scope, name="t", permissions=list(permissions), created_by=alice.user
    ).text.reveal()


def retry(client, run, body=None, **headers):
    return client.post(f"/api/v1/runs/{run.id}/retry", body or {}, headers=headers)


def test_a_run_goes_on_from_a_chosen_model_call(client, finished, model, advance):
    answer = retry(client, finished, {"step": 1})
    assert answer.status_code == 202
    shown = answer.json()
    assert (shown["status"], shown["messages"]) == ("queued", finished.messages)
    assert shown["metadata"] == {"ticket": "7", "retry_of": str(finished.id)}
    model.script(say("Forty-two."))
    new = advance(Run.objects.get(id=shown["id"]))
    assert (new.status, new.output_text, new.steps.count()) == ("completed", "Forty-two.", 1)
    assert Run.objects.get(id=finished.id).output_text == "42"
    assert AuditEntry.objects.filter(action="run.retried", object_id=finished.id).count() == 1


def test_without_a_step_the_last_model_call_is_made_again(client, model, start, advance):
    model.script(ask(("calculate", {"expression": "6 * 7"})), fail(400), say("42"))
    failed = advance(start("What is 6 × 7?", tools=["calculate"]))
    assert failed.status == "failed"
    new = Run.objects.get(id=retry(client, failed).json()["id"])
    assert advance(new).output_text == "42"
    assert [step.kind for step in new.steps.all()] == ["model_call", "tool_call", "model_call"]
    assert len(model.requests) == 3


def test_a_run_that_never_began_is_begun(client, model, start, advance):
    model.script(say("Hello"))
    run = start()
    client.post(f"/api/v1/runs/{run.id}/cancel")
    assert advance(Run.objects.get(id=retry(client, run).json()["id"])).output_text == "Hello"


def test_what_cannot_be_retried_is_refused(client, finished, start):
    for step in (2, 9, 0, "x"):
        answer = retry(client, finished, {"step": step})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "step")
    answer = retry(client, start())
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_not_over")


def test_one_key_makes_one_run(client, finished):
    first, second = (retry(client, finished, **{"Idempotency-Key": "again"}) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert second["Idempotent-Replayed"] == "true"
    assert Run.objects.count() == 2


def test_nobody_retries_what_is_anothers_or_may_only_read(api, finished, bob, charlie, tokens):
    for token in (bob.token, charlie.token):
        assert retry(api(token), finished).status_code == 404
    assert retry(api(tokens("runs:read")), finished).status_code == 403
    assert Run.objects.count() == 1
