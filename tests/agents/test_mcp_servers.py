"""Tools of a real MCP server: listed, filtered, called, at checked addresses only."""

import itertools
import time

import pytest
from django.utils import timezone
from mcp import Client
from mcp_types import Tool as ListedTool
from uuid_utils.compat import uuid7

from agents.models import McpServer
from agents.selectors import mcp_server_of
from agents.services.mcp_servers import create_mcp_server, fresh_tools_of_run, refresh_tools
from agents.tool_sources.catalog import tools_of
from agents.tool_sources.mcp_calls import named
from agents.tool_sources.mcp_connection import Target
from agents.tool_sources.mcp_connections import McpConnections, connections
from agents.tool_sources.mcp_errors import McpUnavailableError
from agents.tool_sources.mcp_tools import mcp_tools
from llmbroker import ToolContext, ToolStatus
from llmbroker.addresses import AddressPolicy
from llmbroker.tools.calls import ToolCall
from llmbroker.tools.execution import run_here
from llmbroker.tools.toolbox import Toolbox
from tenants.encryption import Secret
from tests.support.mcp_server import mcp_server
from tests.support.model_server import ask, say
from tests.support.names import Names
from tests.support.tool_server import tool_server

pytestmark = pytest.mark.django_db

TOKEN = "mcp-token-marker-5c1d7e9f"
ids = itertools.count(1)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    with mcp_server(tmp_path_factory.mktemp("library"), token=TOKEN) as server:
        yield server


@pytest.fixture
def local(settings):
    settings.BROKER_ALLOWED_ADDRESSES = ["127.0.0.1"]


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def add(client, local, library):
    """``add(allowed_tools=…)``: the library, over the API."""

    def add(**values):
        body = {"plugin": "library", "url": library.url, "auth_token": TOKEN, **values}
        answer = client.post("/api/v1/mcp_servers", body)
        assert answer.status_code == 201, answer.content
        return answer.json()

    return add


@pytest.fixture
def call(alice):
    """``call(server, "library-find_book", {…})``: what a model is told, and how it ended."""

    def call(shown, name, arguments, **context):
        server = mcp_server_of(alice.tenant, shown["id"])
        toolbox = Toolbox([tool.function for tool in mcp_tools(server)])
        asked = ToolCall(f"call_{next(ids)}", name, "{}", arguments)
        result = run_here(asked, toolbox, ToolContext(**context))
        return result.status, result.text

    return call


def test_a_server_is_asked_for_its_tools_when_it_is_named(add, client):
    server = add()
    assert server["last_error"] == ""
    listed = {tool["remote"]: tool for tool in server["tools"]}
    assert listed.keys() == {"find_book", "lend.book", "burn_book", "read_book", "say_token"}
    assert listed["lend.book"]["name"] == "library-lend_book"
    assert [listed[name]["effect"] for name in ("find_book", "lend.book", "burn_book")] == [
        "pure",
        "idempotent",
        "once",
    ]
    tools = {tool["name"]: tool for tool in client.get("/api/v1/tools").json()["data"]}
    found = tools["library-find_book"]
    assert (found["source"], found["description"]) == ("mcp", "Find a book. 📚")
    assert found["parameters"]["required"] == ["title"]
    assert client.get(f"/api/v1/mcp_servers/{server['id']}").json() == server
    assert client.get("/api/v1/mcp_servers").json()["data"] == [server]


def test_only_allowed_tools_are_offered(add, client):
    server = add(allowed_tools=["lend.book"])
    path = f"/api/v1/mcp_servers/{server['id']}"

    def offered():
        tools = client.get("/api/v1/tools").json()["data"]
        return [tool["name"] for tool in tools if tool["source"] == "mcp"]

    assert offered() == ["library-lend_book"]
    client.patch(path, {"allowed_tools": []})
    assert offered() == []
    client.patch(path, {"allowed_tools": None})
    assert len(offered()) == 5
    client.patch(path, {"enabled": False})
    assert offered() == []
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


@pytest.fixture
def asked_for(alice, start, advance, model):
    """``asked_for("library-find_book", …)``: the run whose model calls these, as it is left."""

    def asked_for(*names):
        model.script(ask(*((name, {"title": "Dune"}) for name in names)), say("Done."))
        run = start("?", available=tools_of(alice.tenant), tools=names)
        return advance(run, tools_of=fresh_tools_of_run)

    return asked_for


def test_calls_of_the_tools_that_are_named_wait_for_somebodys_word(
    add, client, asked_for, advance, library
):
    server = add(requires_approval=["lend.book"])
    assert server["requires_approval"] == ["lend.book"]
    before = len(library.calls())
    run = asked_for("library-find_book", "library-lend_book")
    assert run.status == "requires_action"
    assert len(library.calls()) == before + 1
    waiting = client.get(f"/api/v1/runs/{run.id}").json()["required_action"]["tool_calls"]
    assert [(each["name"], each["needs"]) for each in waiting] == [
        ("library-lend_book", "approval")
    ]
    approvals = [{"tool_call_id": "call_2", "decision": "approve"}]
    client.post(f"/api/v1/runs/{run.id}/approvals", {"approvals": approvals})
    assert advance(run, tools_of=fresh_tools_of_run).output_text == "Done."
    assert len(library.calls()) == before + 2


@pytest.mark.parametrize(
    ("named", "waiting"),
    [
        ([], []),
        (["burn_book"], ["burn_book"]),
        (["library-lend_book", "no_such"], ["lend_book"]),
        (["*"], ["burn_book", "find_book", "lend_book", "read_book", "say_token"]),
    ],
)
def test_tools_need_approval_by_either_name_or_all(add, client, named, waiting):
    path = f"/api/v1/mcp_servers/{add()['id']}"
    assert client.patch(path, {"requires_approval": named}).status_code == 200
    tools = client.get("/api/v1/tools").json()["data"]
    found = [tool["name"] for tool in tools if tool["requires_approval"]]
    assert sorted(found) == [f"library-{name}" for name in waiting]


def test_the_list_is_kept_and_nobody_is_asked_when_it_is_read(add, client, library):
    add()
    before = len(library.requests)
    client.get("/api/v1/tools")
    body = {"messages": [{"role": "user", "content": "?"}], "tools": ["library-find_book"]}
    assert client.post("/api/v1/runs", body).status_code == 202
    assert len(library.requests) == before


def test_calls_go_over_one_connection_and_carry_the_idempotency_key(add, call, library):
    server = add()
    assert call(server, "library-find_book", {"title": "Ўткан кунлар"}) == (
        ToolStatus.SUCCESS,
        "3 × «Ўткан кунлар»",
    )
    before = len(library.requests)
    _, text = call(server, "library-lend_book", {"title": "Dune"}, idempotency_key="r:c")
    assert "Dune" in text
    assert len(library.requests) - before <= 2, "no new handshake"
    asked = library.calls()[-1]
    assert asked["body"]["params"]["name"] == "lend.book"
    assert "r:c" in str(asked["body"]["params"]["_meta"])
    assert asked["headers"]["authorization"] == f"Bearer {TOKEN}"


def test_a_tool_that_fails_says_so_in_its_servers_words(add, call):
    status, text = call(add(), "library-burn_book", {"title": "Dune"})
    assert (status, "nobody burns Dune" in text) == (ToolStatus.FAILED, True)


def test_arguments_are_checked_before_they_leave(add, call, library):
    server = add()
    before = len(library.calls())
    status, text = call(server, "library-find_book", {"title": "x", "limit": "many"})
    assert (status, '"limit"' in text) == (ToolStatus.INVALID_ARGUMENTS, True)
    assert len(library.calls()) == before


def test_a_tool_that_takes_too_long_is_given_up_and_the_next_call_works(add, call):
    server = add(timeout=0.3)
    began = time.monotonic()
    status, text = call(server, "library-read_book", {"title": "War and Peace"})
    assert (status, "0.3 seconds" in text) == (ToolStatus.FAILED, True)
    assert time.monotonic() - began < 5
    assert call(server, "library-find_book", {"title": "x"})[0] is ToolStatus.SUCCESS


def test_a_token_that_the_server_sends_back_is_not_shown(add, call):
    _, text = call(add(), "library-say_token", {})
    assert "you sent" in text
    assert TOKEN not in text
    assert TOKEN[:12] not in text


def test_a_wrong_token_is_an_error_to_read_and_the_old_list_stays(add, client):
    server = add()
    path = f"/api/v1/mcp_servers/{server['id']}"
    refused = client.patch(path, {"auth_token": "wrong-token-marker"}).json()
    assert refused["last_error"]
    assert "wrong-token" not in refused["last_error"]
    assert refused["tools"] == server["tools"]
    mended = client.patch(path, {"auth_token": TOKEN}).json()
    assert (mended["last_error"], mended["has_token"]) == ("", True)


def test_a_server_that_restarts_is_connected_to_again(tmp_path, client, local, call):
    with mcp_server(tmp_path) as first:
        body = {"plugin": "library", "url": first.url}
        server = client.post("/api/v1/mcp_servers", body).json()
        assert call(server, "library-find_book", {"title": "x"})[0] is ToolStatus.SUCCESS
        first.stop()
        status, text = call(server, "library-find_book", {"title": "x"})
        assert status is ToolStatus.FAILED
        assert "could not be reached" in text or "broke off" in text
    with mcp_server(tmp_path, port=first.port):
        assert call(server, "library-find_book", {"title": "x"})[0] is ToolStatus.SUCCESS


def test_a_connection_that_nobody_uses_is_closed(library, local):
    own = McpConnections(idle_seconds=0.1)
    policy = AddressPolicy.of(["127.0.0.1"])
    target = Target(uuid7(), timezone.now(), policy, library.url, "Authorization", Secret(TOKEN))
    assert own.use(target, Client.list_tools, timeout=10).tools
    deadline = time.monotonic() + 10
    while own._open and time.monotonic() < deadline:
        time.sleep(0.05)
    assert own._open == {}
    assert own.use(target, Client.list_tools, timeout=10).tools


def test_an_old_list_is_refreshed_by_the_run_that_uses_it(add, alice, start, advance, model):
    server = add()
    run = start("?", available=tools_of(alice.tenant), tools=["library-find_book", "today"])
    McpServer.objects.update(tools=[], listed_at="2026-01-01T00:00:00Z")
    model.script(ask(("library-find_book", {"title": "Dune"})), say("Found."))
    run = advance(run, tools_of=fresh_tools_of_run)
    assert (run.status, run.steps.get(kind="tool_call").result) == ("completed", "3 × «Dune»")
    assert len(mcp_server_of(alice.tenant, server["id"]).tools) == 5


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"plugin": "no-dash"}, "plugin"),
        ({"plugin": "x" * 31}, "plugin"),
        ({"url": "http://mcp.example.com/"}, "url"),
        ({"url": "https://mcp.example.com/?key=1"}, "url"),
        ({"auth_header": "Host"}, "auth_header"),
        ({"auth_header": "X-A\r\nB"}, "auth_header"),
        ({"auth_token": "two words"}, "auth_token"),
        ({"timeout": 0}, "timeout"),
        ({"requires_approval": True}, "requires_approval"),
        ({"tools": []}, "tools"),
    ],
)
def test_what_makes_no_sense_is_refused(client, change, param):
    body = {"plugin": "library", "url": "https://mcp.example.com/mcp", **change}
    answer = client.post("/api/v1/mcp_servers", body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert not McpServer.objects.exists()


def test_a_plugin_name_belongs_to_one_kind_of_tools(add, client):
    prompt = {"slug": "books-summary", "template": "x"}
    assert client.post("/api/v1/prompts", prompt).status_code == 201
    add()
    other = {"url": "https://mcp.example.com/mcp"}
    for answer in (
        client.post("/api/v1/mcp_servers", {**other, "plugin": "library"}),
        client.post("/api/v1/mcp_servers", {**other, "plugin": "books"}),
        client.post("/api/v1/mcp_servers", {**other, "plugin": "native"}),
        client.post("/api/v1/prompts", {**prompt, "slug": "library-mine"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "tool_name_taken")


def test_names_become_such_as_models_and_templates_can_call():
    def tool(name, **schema):
        return ListedTool(name=name, input_schema={"type": "object", **schema})

    huge = {"properties": {f"p{number}": {"description": "x" * 100} for number in range(400)}}
    listed = named(
        "p",
        [tool("a.b/c-d"), tool("a_b_c_d"), tool("ўқи"), tool("n" * 100), tool("huge", **huge)],
    )
    assert [each["name"] for each in listed] == ["p-a_b_c_d", "p-" + "n" * 62]
    assert listed[0]["remote"] == "a.b/c-d"


class TestAddresses:
    """Case f-05: what a tenant's URL leads to is checked at every connection."""

    def refused(self, alice, url, settings, **values):
        settings.BROKER_ALLOWED_ADDRESSES = ["127.0.0.1"]
        server = McpServer(tenant=alice.tenant, plugin="library", url=url, **values)
        server.save()
        settings.BROKER_ALLOWED_ADDRESSES = []
        return refresh_tools(server=server).last_error

    def test_a_private_address_is_refused_on_use(self, alice, settings):
        with tool_server() as inside:
            for url in (
                f"http://127.0.0.1:{inside.port}/mcp",
                f"https://127.0.0.1:{inside.port}/mcp",
                f"https://localhost:{inside.port}/mcp",
                f"https://[::ffff:127.0.0.1]:{inside.port}/mcp",
                f"https://0x7f000001:{inside.port}/mcp",
            ):
                assert "may not be reached" in self.refused(alice, url, settings), url
                McpServer.objects.all().delete()
            assert inside.requests == []

    def test_a_private_address_is_refused_on_saving(self, client):
        for url in ("http://127.0.0.1/mcp", "https://10.0.0.1/mcp", "https://[::1]/mcp"):
            body = {"plugin": "library", "url": url}
            assert client.post("/api/v1/mcp_servers", body).status_code == 400

    def test_a_redirect_elsewhere_is_not_followed_and_takes_no_token_along(
        self, alice, local, settings
    ):
        with tool_server() as outside, tool_server() as inside:
            for status in (301, 302, 307, 308):
                outside.answer(status, b"", Location=f"http://127.0.0.1:{inside.port}/mcp")
                server = create_mcp_server(
                    tenant=alice.tenant,
                    values={"plugin": f"p{status}", "url": outside.url},
                    token=Secret(TOKEN),
                )
                assert server.last_error
                assert TOKEN not in server.last_error
            assert outside.requests
            assert inside.requests == []

    @pytest.mark.parametrize("addresses", [["127.0.0.1"], ["1.1.1.1", "::1"]])
    def test_a_name_that_comes_to_mean_a_private_address_is_refused(self, addresses):
        names = Names(["192.0.2.1"], addresses)
        with tool_server() as inside:
            url = f"https://rebind.example.com:{inside.port}/mcp"
            policy = AddressPolicy.of(["192.0.2.0/24"])
            for number, timeout in enumerate([0.3, 10]):
                target = Target(
                    uuid7(), timezone.now(), policy, url, "Authorization", None, resolver=names
                )
                with pytest.raises(McpUnavailableError) as caught:
                    connections.use(target, Client.list_tools, timeout=timeout)
                assert len(names.asked) == number + 1
            assert "may not be reached" in str(caught.value)
            assert inside.requests == []

    def test_an_answer_without_end_is_cut(self, alice, local, settings):
        with tool_server() as endless:
            endless.answer(200, b"x" * (5 * 1024 * 1024), Content_Type="application/json")
            values = {"plugin": "endless", "url": endless.url}
            server = create_mcp_server(tenant=alice.tenant, values=values)
            assert server.last_error
