"""Reading runs, their steps and their events, and cancelling them, over HTTP."""

import pytest

from tests.support.model_server import ask, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def finished(model, start, advance):
    model.script(ask(("calculate", {"expression": "30 * 1.8 + 32"})), say("86 °F"))
    return advance(start("How warm is 30 °C?", tools=["calculate"]))


def test_a_finished_run_shows_its_answer_and_what_it_used(client, finished):
    body = client.get(f"/api/v1/runs/{finished.id}").json()
    assert (body["status"], body["output_text"]) == ("completed", "86 °F")
    assert body["usage"]["total_tokens"] == 30
    assert body["messages"] == [{"role": "user", "content": "How warm is 30 °C?"}]
    assert body["ended_at"] > body["started_at"] > body["created_at"]


def test_steps_show_every_call_with_arguments_and_result(client, finished):
    body = client.get(f"/api/v1/runs/{finished.id}/steps").json()
    assert (body["object"], body["has_more"], body["next_after"]) == ("list", False, None)
    asked, calculated, answered = body["data"]
    assert [step["number"] for step in body["data"]] == [1, 2, 3]
    assert asked["kind"] == "model_call"
    assert asked["llm_name"] == "tested"
    assert asked["message"]["tool_calls"][0]["function"]["name"] == "calculate"
    assert asked["usage"]["prompt_tokens"] == 10
    assert {name: calculated[name] for name in ("kind", "status", "name", "result")} == {
        "kind": "tool_call",
        "status": "completed",
        "name": "calculate",
        "result": "86",
    }
    assert calculated["arguments"] == {"expression": "30 * 1.8 + 32"}
    assert answered["message"]["content"] == "86 °F"
    assert answered["finish_reason"] == "stop"


def test_steps_and_events_are_paged_by_their_numbers(client, finished):
    for what, number in (("steps", "number"), ("events", "sequence_number")):
        url, seen, after = f"/api/v1/runs/{finished.id}/{what}", [], 0
        while after is not None:
            page = client.get(url, {"limit": 2, "after": after}).json()
            assert len(page["data"]) <= 2
            seen += [each[number] for each in page["data"]]
            after = page["next_after"]
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) == getattr(finished, what).count()


def test_events_tell_the_story_from_where_one_was(client, finished):
    url = f"/api/v1/runs/{finished.id}/events"
    first = client.get(url).json()["data"][0]
    assert (first["sequence_number"], first["type"], first["data"]) == (1, "run.queued", {})
    last = client.get(url, {"after": finished.events.count() - 1}).json()["data"]
    assert [event["type"] for event in last] == ["run.completed"]


@pytest.mark.parametrize("what", ["steps", "events"])
@pytest.mark.parametrize(
    "query",
    ["after=x", "after=-1", "after=", "after=99999999999", "limit=0", "limit=1001", "limit=٣"],
)
def test_a_page_that_makes_no_sense_is_refused(client, start, what, query):
    answer = client.get(f"/api/v1/runs/{start().id}/{what}?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == query.split("=")[0]


def test_runs_are_listed_newest_first_without_their_messages(client, start):
    runs = [start(f"question {n}") for n in range(3)]
    page = client.get("/api/v1/runs", {"limit": 2}).json()
    assert [run["id"] for run in page["data"]] == [str(runs[2].id), str(runs[1].id)]
    assert "messages" not in page["data"][0]
    rest = client.get("/api/v1/runs", {"after": page["next_after"]}).json()
    assert [run["id"] for run in rest["data"]] == [str(runs[0].id)]


def test_a_list_costs_the_same_few_queries_whatever_its_length(
    client, start, django_assert_max_num_queries
):
    for n in range(5):
        start(f"question {n}")
    with django_assert_max_num_queries(6):
        assert len(client.get("/api/v1/runs").json()["data"]) == 5


def test_cancelling_over_http_is_the_same_twice(client, start):
    url = f"/api/v1/runs/{start().id}/cancel"
    first, again = client.post(url), client.post(url)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert first.json()["status"] == "cancelled"


def test_cancelling_what_is_over_shows_how_it_ended(client, finished):
    answer = client.post(f"/api/v1/runs/{finished.id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")


def test_why_a_run_stopped_is_in_its_details(client, model, start, advance):
    model.script(ask(("today", {})))
    run = advance(start(tools=["today"], max_steps=1))
    body = client.get(f"/api/v1/runs/{run.id}").json()
    assert body["status"] == "incomplete"
    assert body["incomplete_details"] == {"reason": "max_steps"}
