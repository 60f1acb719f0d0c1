"""Markers are planted as secrets of tools; whatever a run leaves behind is searched for them."""

import json
import logging

import pytest
import redis
from django.conf import settings as project
from django.db import connection

from agents.services.creation import RunRequest, create_run
from agents.services.http_tools import create_http_tool
from agents.services.mcp_servers import fresh_tools_of_run
from agents.tool_sources.catalog import tools_of
from tests.agents.helpers import caller_of
from tests.support.mcp_server import mcp_server
from tests.support.model_server import ask, say
from tests.support.tool_server import tool_server

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "mcp-7Qh2mZ0pTENANTA93xLw"
ANY = {"type": "object", "properties": {}}


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


def pieces(secret):
    return {secret[start : start + 8] for start in range(len(secret) - 7)}


def whole_database():
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT t::text FROM "{table}" t')  # noqa: S608
            yield from (row[0] for row in cursor.fetchall())


def test_no_answer_log_step_event_row_or_message_holds_a_piece_of_a_tools_secret(
    *, api, alice, library, queue, advance, model, settings, caplog
):
    caplog.set_level(logging.DEBUG)
    settings.BROKER_ALLOWED_ADDRESSES = ["127.0.0.1"]
    client = api(alice.token)
    answers = []

    def send(method, path, body=None):
        answers.append(getattr(client, method)(f"/api/v1/{path}", body))
        return answers[-1].json() if answers[-1].content else None

    with tool_server() as server:
        values = {"slug": "shop-charge", "url": server.url, "parameters": ANY}
        new = create_http_tool(tenant=alice.tenant, values=values)
        secret = new.secret.reveal()
        body = {"plugin": "library", "url": library.url, "auth_token": TOKEN}
        mcp = send("post", "mcp_servers", body)
        send("post", "mcp_servers", {**body, "url": f"https://{TOKEN}@mcp.example.com/"})
        send("post", "mcp_servers", {**body, "plugin": "other", "auth_token": f"{TOKEN} x"})
        send("patch", f"mcp_servers/{mcp['id']}", {"auth_token": TOKEN, "timeout": 9})
        send("post", f"mcp_servers/{mcp['id']}/refresh")
        send("get", "mcp_servers")
        send("get", "http_tools")
        send("get", "tools")

        server.answer(500, {"error": "broken"})
        model.script(
            ask(("shop-charge", {}), ("library-say_token", {}), ("library-burn_book", {})),
            say("Done."),
        )
        run = create_run(
            caller=caller_of(alice),
            request=RunRequest(
                messages=[{"role": "user", "content": "Go."}],
                tools=["shop-charge", "library-say_token", "library-burn_book"],
            ),
            available=tools_of(alice.tenant),
        ).run
        advance(run, tools_of=fresh_tools_of_run)
        assert server.requests[0].is_signed_with(secret)
    assert library.calls()[0]["headers"]["authorization"] == f"Bearer {TOKEN}"

    shown = send("get", f"runs/{run.id}")
    assert shown["status"] == "completed"
    steps = send("get", f"runs/{run.id}/steps")
    assert "you sent" in json.dumps(steps)
    send("get", f"runs/{run.id}/events")

    written = [answer.content.decode() + str(answer.headers) for answer in answers]
    written += [caplog.text, *whole_database()]
    written += [message.decode() for message in queue.lrange("celery", 0, -1)]
    written += [json.dumps(request.body) for request in model.requests]
    for secret_piece in pieces(TOKEN) | pieces(secret.removeprefix("whsec_")):
        assert not [text for text in written if secret_piece in text], secret_piece
