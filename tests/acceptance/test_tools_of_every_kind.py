"""One run, through a real worker, with a native tool, a prompt, an HTTP tool and an MCP tool."""

import time

import pytest
import redis
from django.conf import settings as project

from tests.support.mcp_server import mcp_server
from tests.support.model_server import ModelServer, ask, say
from tests.support.tool_server import tool_server
from tests.support.worker import running_worker

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-acme-marker-3f9c1d5e7b"
TOKEN = "mcp-token-marker-5c1d7e9f"
SUMMARY = "Bugun kitob o'qiladi. 📖"


def answers(request):
    """A model that plays both parts: the run's own, and the one that the prompt asks."""
    if request.messages[0]["content"].startswith("Xulosala:"):
        return say(SUMMARY, usage=(20, 5))
    turn = sum(message["role"] == "assistant" for message in request.messages)
    return [
        ask(("native-today", {"timezone": "Asia/Tashkent"}), usage=(50, 10)),
        ask(("library-find_book", {"title": "Ўткан кунлар", "limit": 1}), usage=(60, 10)),
        ask(("matn-xulosa", {"matn": "Uzun matn"}), usage=(70, 10)),
        ask(("shop-order", {"title": "Ўткан кунлар"}), usage=(80, 10)),
        say("Buyurtma berildi.", usage=(90, 10)),
    ][turn]


@pytest.fixture
def model():
    with ModelServer() as server:
        server.answer_with(answers)
        yield server


@pytest.fixture
def shop():
    with tool_server() as server:
        server.answer(200, {"order": 17})
        yield server


@pytest.fixture
def library(tmp_path):
    with mcp_server(tmp_path, token=TOKEN) as server:
        yield server


@pytest.fixture
def queue():
    queue = redis.Redis.from_url(project.REDIS_URL)
    queue.delete("celery")
    yield queue
    queue.close()


def created(client, path, body):
    answer = client.post(f"/api/v1/{path}", body)
    assert answer.status_code in {201, 202}, answer.content
    return answer.json()


def ended(client, run_id, timeout=60):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        run = client.get(f"/api/v1/runs/{run_id}").json()
        if run["ended_at"] is not None:
            return run
        time.sleep(0.05)
    raise TimeoutError(f"the run is still {run['status']}")


def test_a_run_uses_tools_of_every_kind(*, api, alice, model, shop, library, queue, settings):
    settings.BROKER_ALLOWED_ADDRESSES = ["127.0.0.1"]
    client = api(alice.token)
    created(client, "keys", {"ref": "SMALL_API_KEY", "value": KEY})
    created(
        client,
        "endpoints",
        {
            "name": "small",
            "base_url": model.base_url,
            "model": "small-1",
            "api_key_ref": "SMALL_API_KEY",
        },
    )
    created(client, "prompts", {"slug": "matn-xulosa", "template": "Xulosala: {{$matn}}"})
    order = created(
        client,
        "http_tools",
        {
            "slug": "shop-order",
            "url": shop.url,
            "parameters": {"type": "object", "properties": {"title": {"type": "string"}}},
        },
    )
    created(client, "mcp_servers", {"plugin": "library", "url": library.url, "auth_token": TOKEN})
    names = ["native-today", "library-find_book", "matn-xulosa", "shop-order"]
    listed = {tool["name"]: tool["source"] for tool in client.get("/api/v1/tools").json()["data"]}
    assert [listed[name] for name in names] == ["native", "mcp", "prompt", "http"]
    created(client, "agents", {"slug": "librarian", "name": "Librarian", "tools": names})

    body = {"agent": "librarian", "messages": [{"role": "user", "content": "Kitob top."}]}
    run_id = created(client, "runs", body)["id"]
    with running_worker(BROKER_ALLOWED_ADDRESSES="127.0.0.1") as worker:
        run = ended(client, run_id)

    assert (run["status"], run["output_text"]) == ("completed", "Buyurtma berildi.")
    steps = client.get(f"/api/v1/runs/{run_id}/steps").json()["data"]
    results = {step["name"]: step["result"] for step in steps if step["kind"] == "tool_call"}
    assert list(results) == names
    assert "Asia/Tashkent" in results["native-today"]
    assert results["library-find_book"] == "1 × «Ўткан кунлар»"
    assert results["matn-xulosa"] == SUMMARY
    assert results["shop-order"] == '{"order": 17}'

    calls = client.get(f"/api/v1/calls?trace_id={run['trace_id']}").json()["data"]
    assert sorted(call["operation"] for call in calls) == ["librarian"] * 5 + ["matn.xulosa"]
    assert {call["key_source"] for call in calls} == {"own"}
    (request,) = shop.requests
    assert request.json["run_id"] == run_id
    assert request.is_signed_with(order["secret"])
    assert library.calls()[0]["headers"]["authorization"] == f"Bearer {TOKEN}"
    for secret in (KEY, TOKEN, order["secret"]):
        assert secret not in worker.output
        assert secret not in str(steps) + str(calls)
