"""Final answers that must fit a JSON Schema: checked, mended once, or a failed run."""

import pytest

from agents.services.replay import position_of
from agents.tool_registry import ToolRegistry
from tests.support.model_server import ask, fail, say

pytestmark = pytest.mark.django_db

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
    "required": ["city", "degrees"],
}
FITS = '{"city": "Toshkent", "degrees": 31}'


@pytest.fixture
def client(api, alice):
    return api(alice.token)


def shown(client, run):
    return client.get(f"/api/v1/runs/{run.id}").json()


def test_an_answer_that_fits_is_shown_as_json(client, model, start, advance):
    model.script(ask(("today", {"timezone": "UTC"})), say(FITS))
    run = advance(start("How warm?", tools=["today"], output_schema=SCHEMA))
    body = shown(client, run)
    assert (body["status"], body["output"]) == ("completed", {"city": "Toshkent", "degrees": 31})
    assert model.requests[0].body["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize(
    "misfit",
    [
        ("It is 31 °C.", "no JSON"),
        ('{"city": "Toshkent"}', "'degrees' is a required property"),
        ('{"city": "Toshkent", "degrees": NaN}', "no JSON"),
        ('{"city": "Toshkent", "degrees": 1e400}', "no JSON"),
        ('{"city": "Toshkent", "degrees": 18446744073709551617}', "more than 64 bits"),
        ('```json\n{"city": "Toshkent", "degrees": -9223372036854775809}\n```', "64 bits"),
    ],
)
def test_a_misfit_is_told_to_the_model_and_mended_once(client, model, start, advance, misfit):
    wrong, why = misfit
    model.script(say(wrong), say(f"```json\n{FITS}\n```"))
    run = advance(start("How warm?", output_schema=SCHEMA))
    assert shown(client, run)["output"] == {"city": "Toshkent", "degrees": 31}
    assistant, complaint = model.requests[1].messages[-2:]
    assert (assistant["role"], assistant["content"]) == ("assistant", wrong)
    assert complaint["role"] == "user"
    assert why in complaint["content"]


def test_a_second_misfit_fails_the_run_and_is_kept(client, model, start, advance):
    model.script(say("warm"), say("very warm"))
    run = advance(start("How warm?", output_schema=SCHEMA))
    body = shown(client, run)
    assert (body["status"], body["last_error"]["code"]) == ("failed", "invalid_output")
    assert (body["output_text"], body["output"]) == ("very warm", None)


def test_a_worker_that_takes_over_knows_of_the_first_misfit(model, start, advance):
    model.script(say("warm"), fail(400))
    run = start("How warm?", output_schema=SCHEMA)
    gone = advance(run)
    assert gone.status == "failed"
    position = position_of(gone, gone.steps.filter(status="completed"), ToolRegistry([]))
    assert not position.loop.done
    assert position.loop.messages[-2] == {"role": "assistant", "content": "warm"}


def test_a_pattern_of_the_tenants_cannot_keep_a_worker_busy(client, model, start, advance):
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    model.script(say('{"a": "%s!"}' % ("a" * 60)))
    assert advance(start("Go", output_schema=schema)).status == "completed"
