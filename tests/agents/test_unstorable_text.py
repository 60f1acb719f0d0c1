"""What PostgreSQL or UTF-8 cannot hold is replaced where all can see it, and breaks nothing."""

import json

import pytest

from tests.agents.helpers import a_tool
from tests.support.model_server import Reply, ask, say

pytestmark = pytest.mark.django_db

ROTTEN = "null:\x00 half:\ud83d pair:🍀 literal:\\u0000"
MENDED = "null:␀ half:\ufffd pair:🍀 literal:\\u0000"


def test_a_models_text_is_stored_and_the_run_ends_as_the_model_did(model, start, advance):
    model.script(say(ROTTEN))
    run = advance(start())
    assert (run.status, run.output_text) == ("completed", MENDED)
    assert run.steps.get().message["content"] == MENDED


def test_a_tools_arguments_and_result_are_stored(model, complete):
    model.script(ask(("echo", json.dumps({"t": "a\x00b", "c\x00": 1}))), say("Ok."))
    run = complete(tools=[a_tool("echo", lambda **arguments: f"{arguments['t']}\ud83d")])
    step = run.steps.get(kind="tool_call")
    assert step.arguments == {"t": "a␀b", "c␀": 1}
    assert step.result == "a␀b\ufffd"
    assert model.requests[-1].messages[-1]["content"] == step.result


def test_half_a_surrogate_pair_in_arguments_does_not_stop_the_run(model, complete):
    model.script(ask(("echo", r'{"t": "a\u0000b\ud835"}')), say("Ok."))
    run = complete(tools=[a_tool("echo", lambda t: t)])
    assert run.status == "completed"
    assert run.steps.get(kind="tool_call").result.strip()


def test_a_tools_exception_and_name_are_stored(model, complete):
    def broken():
        raise RuntimeError(ROTTEN)

    model.script(ask(("broken", {}), (ROTTEN, {})), say("Ok."))
    run = complete(tools=[a_tool("broken", broken)])
    assert run.status == "completed"
    assert run.steps.get(number=2).result == f"Tool broken failed: {MENDED}"
    assert run.steps.get(number=3).name == MENDED


def test_numbers_that_are_none_do_not_stop_the_run(model, complete):
    model.script(ask(("scale", '{"k": NaN}'), ("scale", '{"k": 1e999}')), say("Ok."))
    run = complete(tools=[a_tool("scale", lambda k: f"scaled by {k}")])
    assert run.status == "completed"
    assert all(step.result for step in run.steps.filter(kind="tool_call"))


def test_usage_beyond_all_bounds_is_unknown(model, start, advance):
    body = json.loads(say("Fine.").body)
    body["usage"]["prompt_tokens"] = 10**30
    model.script(Reply(body=json.dumps(body).encode()))
    run = advance(start())
    assert (run.status, run.output_text) == ("completed", "Fine.")
    assert run.usage is None or run.usage["prompt_tokens"] is None


def test_questions_and_metadata_are_stored(api, alice):
    answer = api(alice.token).post(
        "/api/v1/runs",
        data='{"messages": [{"role": "user", "content": "a\\u0000b\\ud83d"}]}',
        content_type="application/json",
    )
    assert answer.status_code == 202, answer.content
    assert answer.json()["messages"][0]["content"] == "a␀b\ufffd"
