"""A model call that fails ends the run, and says why without giving a key away."""

import json

import pytest
from django.db import OperationalError, connection

from agents.models import Run
from llmbroker import Broker, InMemoryRegistry, LLMConfig
from tenants.errors import SecretUnavailable
from tests.agents.helpers import MODEL_KEY, Models, worker_dies
from tests.support.model_server import ask, fail, say

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (fail(400, "messages: bad role"), "request_refused"),
        (fail(400, "This model's maximum context length is 8192"), "context_length_exceeded"),
        (fail(401, f"Incorrect API key provided: {MODEL_KEY}"), "no_llm_available"),
        (fail(404, "The model does not exist"), "no_llm_available"),
    ],
)
def test_the_run_fails_with_a_code_and_words(model, start, advance, reply, code):
    model.answer_with(lambda request: reply)
    run = advance(start())
    assert run.status == "failed"
    assert run.last_error.keys() == {"code", "message"}
    assert run.last_error["code"] == code
    assert run.last_error["message"]
    assert MODEL_KEY not in json.dumps(run.last_error)
    step = run.steps.get()
    assert (step.status, step.error) == ("failed", run.last_error)
    assert run.lease_until is None
    assert list(run.events.values_list("type", flat=True))[-2:] == ["error", "run.failed"]


def test_the_words_of_a_refused_key_do_not_hold_it(model, start, advance):
    model.answer_with(lambda request: fail(401, f"Incorrect API key provided: {MODEL_KEY}"))
    run = advance(start())
    everything = json.dumps(
        [run.last_error, list(run.events.values("data")), list(run.steps.values("error"))]
    )
    assert MODEL_KEY not in everything
    assert MODEL_KEY[-8:] not in everything


def test_what_was_done_before_the_failure_stays(model, start, advance):
    model.script(ask(("calculate", {"expression": "2*3"})), fail(400, "no"))
    run = advance(start(tools=["calculate"]))
    assert run.status == "failed"
    assert [step.status for step in run.steps.all()] == ["completed", "completed", "failed"]
    assert run.usage["total_tokens"] == 15


def test_a_scope_without_any_key_is_told_so(start, advance, model):
    with Broker(
        InMemoryRegistry([LLMConfig("keyless", model.base_url, "m", "NO_SUCH_KEY")]), secrets={}
    ) as keyless:
        run = advance(start(), broker=keyless)
    assert run.status == "failed"
    assert run.last_error["code"] == "no_llm_available"
    assert model.requests == []


def test_a_secret_that_cannot_be_opened_is_told_by_its_own_code(start, advance, broker):
    async def locked(*args, **kwargs):
        raise SecretUnavailable("The key OPENAI_API_KEY cannot be opened: enter it again.")

    run = advance(start(), broker=Models(broker, locked))
    assert run.last_error == {
        "code": "secret_unavailable",
        "message": "The key OPENAI_API_KEY cannot be opened: enter it again.",
    }


def test_a_fault_of_ours_ends_the_run_without_telling_its_insides(start, advance, broker):
    async def broken(*args, **kwargs):
        raise ZeroDivisionError("internals")

    run = start()
    with pytest.raises(ZeroDivisionError):
        advance(run, broker=Models(broker, broken))
    run.refresh_from_db()
    assert run.status == "failed"
    assert run.last_error == {
        "code": "internal_error",
        "message": "Something went wrong on our side.",
    }


def test_a_database_that_fails_leaves_the_run_to_the_next_worker(model, start, advance):
    model.script(say("First."), say("Second."))
    run = start()

    def refuse(execute, sql, params, many, context):
        if model.requests and "UPDATE" in sql:
            raise OperationalError("the database is going away")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse), pytest.raises(OperationalError):
        advance(run)
    assert Run.objects.get(id=run.id).status == "in_progress"
    worker_dies(run)
    assert advance(run).output_text == "Second."
