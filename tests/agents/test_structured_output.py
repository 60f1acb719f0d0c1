"""Final answers that must fit a JSON Schema: checked, mended once, or a failed run."""

import json

import pytest

from agents.services.replay import position_of
from agents.structured import review_of
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


MULTIPLYING = {
    **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)},
    "d40": {"type": "object"},
}


@pytest.mark.parametrize("where", ["#/$defs/d0", "#/$defs/d20"])
def test_a_schema_whose_references_multiply_is_refused_at_once(client, where):
    schema = {"$defs": MULTIPLYING, "$ref": where}
    body = {"messages": [{"role": "user", "content": "hi"}], "output_schema": schema}
    answer = client.post("/api/v1/runs", body)
    assert answer.status_code == 400
    assert "takes too long" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": MULTIPLYING},
        {"properties": {"a": {"items": {"anyOf": [{"const": n} for n in range(2000)]}}}},
    ],
    ids=["references", "alternatives"],
)
def test_an_answer_that_takes_too_long_to_check_is_no_answer(schema):
    """A worker's loop is everybody's: nobody's schema keeps it busy."""
    answer = {"a": {}} if "$defs" in schema else {"a": ["x"] * 5000}
    told = review_of(schema)(json.dumps(answer))
    assert "too large to be checked" in told


def test_items_that_must_differ_are_compared_by_what_they_are():
    review = review_of({"uniqueItems": True})
    assert review('[{"a": 1, "b": [2]}, {"a": 1, "b": [3]}, 1, "1", true]') is None
    assert "not all different" in review('[{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]')
    assert review(str([[n] for n in range(3000)])) is None
    assert "too large" in review("[" * 300 + "]" * 300)


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
