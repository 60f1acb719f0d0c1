"""A tenant's run, from HTTP through a real worker process to a real model server and back."""

import json
import time

import pytest
import redis
from django.conf import settings as project

from agents.models import Run
from tests.agents.helpers import worker_dies
from tests.support.model_server import ModelServer, ask, by_turn, say
from tests.support.weather_service import weather_service
from tests.support.worker import running_worker

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-acme-marker-3f9c1d5e7b"
QUESTION = (
    "Bugun qaysi kun va Toshkentda ob-havo qanday? "
    "Agar 30 darajadan issiq bo'lsa, 30 * 1.8 + 32 ni hisobla. 🌤"
)
ANSWER = "Bugun dushanba, Toshkentda 31 °C; 30 °C — bu 86 °F. ☀️"
SEED_TASK = by_turn(
    ask(("today", {"timezone": "Asia/Tashkent"}), usage=(50, 10)),
    ask(("weather", {"city": "Toshkent"}), usage=(80, 10)),
    ask(("calculate", {"expression": "30 * 1.8 + 32"}), usage=(110, 10)),
    say(ANSWER, usage=(140, 20)),
)


@pytest.fixture
def model():
    with ModelServer() as server:
        server.answer_with(SEED_TASK)
        yield server


@pytest.fixture
def weather():
    with weather_service() as service:
        yield service


@pytest.fixture
def worker(weather):
    """``with worker() as process``: a worker of this test's database and queue."""
    return lambda: running_worker(WEATHER_API_URL=weather.url, BROKER_ALLOW_PRIVATE_ADDRESSES="1")


@pytest.fixture
def acme_api(api, alice, model, settings):
    """Alice's client, after she has named her model and stored its key."""
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    client = api(alice.token)
    endpoint = {
        "name": "small",
        "base_url": model.base_url,
        "model": "small-1",
        "api_key_ref": "SMALL_API_KEY",
    }
    assert client.post("/api/v1/endpoints", endpoint).status_code == 201
    key = {"ref": "SMALL_API_KEY", "value": KEY}
    assert client.post("/api/v1/keys", key).status_code == 201
    return client


@pytest.fixture
def queue():
    queue = redis.Redis.from_url(project.REDIS_URL)
    queue.delete("celery")
    yield queue
    queue.close()


def create(client, **values):
    body = {
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": ["today", "weather", "calculate"],
        "operation": "seed-task",
        **values,
    }
    answer = client.post("/api/v1/runs", body)
    assert answer.status_code == 202, answer.content
    return answer.json()["id"]


def ended(client, run_id, timeout=30):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        run = client.get(f"/api/v1/runs/{run_id}").json()
        if run["ended_at"] is not None:
            return run
        time.sleep(0.05)
    raise TimeoutError(f"the run is still {run['status']}")


def listed(client, path):
    return client.get(f"/api/v1/{path}").json()["data"]


def test_a_run_calls_three_tools_and_answers_and_all_of_it_can_be_seen(
    *, acme_api, worker, model, weather, queue, charlie, api
):
    run_id = create(acme_api)
    message = b"".join(queue.lrange("celery", 0, -1))
    with worker() as process:
        run = ended(acme_api, run_id)
    assert (run["status"], run["output_text"]) == ("completed", ANSWER)
    assert run["usage"]["total_tokens"] == 60 + 90 + 120 + 160

    steps = listed(acme_api, f"runs/{run_id}/steps")
    assert [step["name"] for step in steps if step["kind"] == "tool_call"] == [
        "today",
        "weather",
        "calculate",
    ]
    today, forecast, calculated = (step for step in steps if step["kind"] == "tool_call")
    assert "Asia/Tashkent" in today["result"]
    assert forecast["result"].startswith("Tashkent, Uzbekistan: 31 °C")
    assert calculated["result"] == "86"
    assert weather.places == ["Toshkent"]

    calls = listed(acme_api, f"calls?trace_id={run['trace_id']}")
    assert [call["id"] for call in reversed(calls)] == [
        step["call_id"] for step in steps if step["kind"] == "model_call"
    ]
    assert {(call["status"], call["operation"], call["key_source"]) for call in calls} == {
        ("ok", "seed-task", "own")
    }
    assert sum(call["usage"]["total_tokens"] for call in calls) == run["usage"]["total_tokens"]

    assert {request.authorization for request in model.requests} == {f"Bearer {KEY}"}
    assert model.requests[0].messages[0]["content"] == QUESTION
    events = listed(acme_api, f"runs/{run_id}/events")
    assert (events[0]["type"], events[-1]["type"]) == ("run.queued", "run.completed")

    assert api(charlie.token).get(f"/api/v1/runs/{run_id}").status_code == 404
    everything = json.dumps([run, steps, calls, events]).encode() + message
    assert KEY not in process.output
    assert KEY.encode() not in everything
    assert QUESTION[:20].encode() not in message, "nothing of it travels"


def test_a_worker_killed_in_the_middle_hands_its_run_on(acme_api, worker, model, queue):
    with worker() as first:
        model.answer_with(_slow_second_turn)
        run_id = create(acme_api)
        model.wait_for_requests(2, timeout=30)
        first.kill()
    done = listed(acme_api, f"runs/{run_id}/steps")[:2]
    assert [step["status"] for step in done] == ["completed", "completed"]

    model.answer_with(SEED_TASK)
    run = Run.objects.get(id=run_id)
    worker_dies(run)  # the lease would run out by itself in a few seconds
    with worker():
        assert ended(acme_api, run_id)["output_text"] == ANSWER
    assert listed(acme_api, f"runs/{run_id}/steps")[:2] == done
    assert len(model.requests) == 4 + 1, "only the call in flight is made again"


def _slow_second_turn(request):
    reply = SEED_TASK(request)
    return reply.after(20) if len(request.messages) > 1 else reply


def test_a_run_cancelled_while_no_worker_is_up_never_starts(acme_api, worker, model, queue):
    run_id = create(acme_api)
    assert acme_api.post(f"/api/v1/runs/{run_id}/cancel").json()["status"] == "cancelled"
    other = create(acme_api)
    with worker():
        assert ended(acme_api, other)["status"] == "completed"
    assert acme_api.get(f"/api/v1/runs/{run_id}").json()["status"] == "cancelled"
    assert len(model.requests) == 4
    assert listed(acme_api, f"runs/{run_id}/steps") == []


def test_a_worker_that_is_stopped_finishes_what_it_is_doing(acme_api, worker, model, queue):
    model.answer_with(lambda request: say("Done all the same.").after(1))
    with worker() as process:
        run_id = create(acme_api)
        model.wait_for_requests(1, timeout=30)
    assert process.process.returncode == 0
    assert acme_api.get(f"/api/v1/runs/{run_id}").json()["output_text"] == "Done all the same."
