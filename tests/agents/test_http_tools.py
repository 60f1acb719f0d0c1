"""HTTP tools called: signed, bounded, to checked addresses only."""

import gzip

import pytest

from agents.models import HttpTool
from agents.services.http_tools import create_http_tool
from agents.services.prompts import PromptText, create_prompt
from agents.tool_sources.catalog import tools_of, tools_of_run
from agents.tool_sources.guarded_http import MAX_ANSWER_BYTES
from agents.tool_sources.http_tools import http_tool
from llmbroker import ToolContext, ToolStatus
from llmbroker.tools.calls import ToolCall
from llmbroker.tools.execution import run_here
from llmbroker.tools.toolbox import Toolbox
from tests.support.model_server import ask, say
from tests.support.names import Names
from tests.support.tool_server import tool_server

pytestmark = pytest.mark.django_db

ANY = {"type": "object", "properties": {"amount": {"type": "integer"}}}


@pytest.fixture
def server():
    with tool_server() as server:
        yield server


@pytest.fixture
def local(settings):
    """A policy that allows the loopback server, as a local trial does."""
    settings.BROKER_ALLOWED_ADDRESSES = ["127.0.0.1"]


@pytest.fixture
def define(alice, server, local):
    def define(**values):
        given = {"slug": "shop-charge", "url": server.url, "parameters": ANY, **values}
        return create_http_tool(tenant=alice.tenant, values=given)

    return define


def call(row, arguments=None, *, resolver=None, **context):
    """What a model is told, and how it ended."""
    toolbox = Toolbox([http_tool(row, resolver=resolver).function])
    asked = ToolCall("call_1", row.slug, "{}", arguments if arguments is not None else {})
    result = run_here(asked, toolbox, ToolContext(**context))
    return result.status, result.text


def test_a_call_is_a_signed_post_and_its_answer_the_result(define, server):
    new = define()
    server.answer(200, {"charged": 5, "note": "✓"})
    context = {"run_id": "r1", "scope": "s1", "tool_call_id": "call_1", "idempotency_key": "r1:c1"}
    status, text = call(new.tool, {"amount": 5}, **context)
    assert status is ToolStatus.SUCCESS
    assert '"charged": 5' in text
    (request,) = server.requests
    assert request.json == {
        "tool": "shop-charge",
        "arguments": {"amount": 5},
        "run_id": "r1",
        "scope_id": "s1",
        "tool_call_id": "call_1",
    }
    assert request.headers["idempotency-key"] == "r1:c1"
    assert request.is_signed_with(new.secret.reveal())
    assert new.secret.reveal() not in str(request)


def test_the_same_call_again_has_the_same_ids(define, server):
    tool = define().tool
    for _ in range(2):
        call(tool, idempotency_key="r1:c1")
    call(tool, idempotency_key="r1:c2")
    first, second, other = (request.headers["webhook-id"] for request in server.requests)
    assert first == second != other


@pytest.mark.parametrize("key", ["r1:сall", "r1:\r\nX-Injected: 1", "r" * 300])
def test_an_id_that_a_header_cannot_hold_travels_as_its_digest(define, server, key):
    assert call(define().tool, idempotency_key=key)[0] is ToolStatus.SUCCESS
    assert len(server.requests[0].headers["idempotency-key"]) == 64
    assert "x-injected" not in server.requests[0].headers


def test_arguments_that_do_not_fit_never_leave(define, server):
    status, text = call(define().tool, {"amount": "many"})
    assert (status, '"amount"' in text) == (ToolStatus.INVALID_ARGUMENTS, True)
    assert server.requests == []


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ((422, {"error": {"message": "amount is\n too high"}}), ToolStatus.RETRY, "too high"),
        ((422, {"detail": ["?"]}), ToolStatus.FAILED, "answered 422"),
        ((403, {"error": "no"}), ToolStatus.FAILED, "answered 403: no. Trying again"),
        ((500, {"message": "x" * 999}), ToolStatus.FAILED, "x" * 199 + "…"),
        ((500, b"<html>stack trace</html>"), ToolStatus.FAILED, "answered 500"),
        ((200, b"\x89PNG"), ToolStatus.FAILED, "no text"),
        ((204, b""), ToolStatus.SUCCESS, "(empty result)"),
    ],
)
def test_what_goes_wrong_is_told_in_a_short_clean_text(define, server, answer, status, said):
    server.answer(*answer)
    ended, text = call(define().tool)
    assert ended is status
    assert said in text
    assert "stack trace" not in text
    assert len(text) < 300


def test_a_redirect_is_not_followed(define, server):
    with tool_server() as elsewhere:
        server.answer(307, b"", Location=elsewhere.url)
        status, text = call(define().tool)
        assert (status, "redirect" in text) == (ToolStatus.FAILED, True)
        assert elsewhere.requests == []


def test_an_answer_that_is_too_large_is_not_read(define, server):
    server.answer(200, b"x" * (MAX_ANSWER_BYTES + 1), Content_Type="text/plain")
    status, text = call(define().tool)
    assert (status, "larger than" in text) == (ToolStatus.FAILED, True)


def test_a_compressed_answer_counts_by_what_it_unfolds_to(define, server):
    body = gzip.compress(b"x" * (MAX_ANSWER_BYTES + 1))
    server.answer(200, body, Content_Type="text/plain", Content_Encoding="gzip")
    status, text = call(define().tool)
    assert (status, "larger than" in text) == (ToolStatus.FAILED, True)


def test_a_slow_answer_is_given_up_in_time(define, server):
    server.answer(200, {}, delay=2)
    status, text = call(define(timeout=0.2).tool)
    assert (status, "in time" in text) == (ToolStatus.FAILED, True)


def test_a_secret_that_cannot_be_opened_is_not_left_out(define, server):
    tool = define().tool
    tool.sealed = bytes(tool.sealed)[:-1] + b"x"
    status, text = call(tool)
    assert (status, "secret cannot be opened" in text) == (ToolStatus.FAILED, True)
    assert server.requests == []


BLOCKED = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "https://2852039166/",
    "https://0x7f000001:{port}/",
    "https://0177.0.0.1:{port}/",
    "https://127.1:{port}/",
    "https://[::1]:{port}/",
    "https://[fd00:ec2::254]/",
    "https://100.100.100.200/",
    "https://0.0.0.0:{port}/",
    "https://localhost:{port}/tool",
    "http://127.0.0.1:{port}/tool",
    "https://metadata.google.internal/",
    "https://user:pw@10.0.0.1#@api.example.com/v1",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_x",
]


class TestAddresses:
    """Case f-05: with a policy that allows the public network only."""

    @pytest.mark.parametrize("url", BLOCKED)
    def test_a_blocked_address_is_refused_on_use(self, define, server, settings, url):
        tool = define().tool
        settings.BROKER_ALLOWED_ADDRESSES = []
        url = url.format(port=server.port)
        HttpTool.objects.filter(pk=tool.pk).update(url=url)  # as if it had been let in before
        status, text = call(HttpTool.objects.select_related("data_key").get(pk=tool.pk))
        assert (status, "not be reached" in text) == (ToolStatus.FAILED, True)
        assert server.requests == []

    @pytest.mark.parametrize("url", BLOCKED)
    def test_a_blocked_address_is_refused_on_saving(self, api, alice, server, url):
        body = {"slug": "a-b", "url": url.format(port=server.port), "parameters": ANY}
        answer = api(alice.token).post("/api/v1/http_tools", body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "url")

    def at(self, define, settings, url):
        tool = define().tool
        settings.BROKER_ALLOWED_ADDRESSES = []
        tool.url = url
        return tool

    @pytest.mark.parametrize(
        "addresses", [["127.0.0.1"], ["1.1.1.1", "::1"], ["::ffff:7f00:1"], ["64:ff9b::7f00:1"]]
    )
    def test_a_name_for_a_private_address_is_refused(self, define, server, settings, addresses):
        tool = self.at(define, settings, f"https://dual.example.com:{server.port}/tool")
        status, text = call(tool, resolver=Names(addresses))
        assert (status, "may not be reached" in text) == (ToolStatus.FAILED, True)
        assert server.requests == []

    def test_a_name_is_looked_up_once_per_connection(self, define, server, settings):
        """The second answer, which would lead inside, is never asked for."""
        names = Names(["192.0.2.1"], ["127.0.0.1"])
        tool = define().tool
        settings.BROKER_ALLOWED_ADDRESSES = ["192.0.2.0/24"]
        tool.url, tool.timeout = f"https://rebind.example.com:{server.port}/tool", 0.3
        assert call(tool, resolver=names)[0] is ToolStatus.FAILED
        assert names.asked == ["rebind.example.com"]
        status, text = call(tool, resolver=names)
        assert (status, "may not be reached" in text) == (ToolStatus.FAILED, True)
        assert server.requests == []


def test_a_run_uses_it_as_any_other_tool(*, define, server, model, start, advance, alice):
    new = define()
    server.answer(200, {"charged": 5})
    model.script(ask(("shop-charge", {"amount": 5}), ("today", {})), say("Paid."))
    run = start("Pay.", available=tools_of(alice.tenant), tools=["shop-charge", "today"])
    run = advance(run, tools_of=tools_of_run)
    assert (run.status, run.output_text) == ("completed", "Paid.")
    (request,) = server.requests
    assert request.json["run_id"] == str(run.id)
    assert request.json["scope_id"] == str(alice.scope.id)
    assert request.headers["idempotency-key"].startswith(f"{run.id}:")
    assert request.is_signed_with(new.secret.reveal())


def test_a_template_calls_it_too(*, define, server, alice, model, start, advance):
    define()
    server.answer(200, {"charged": 5})
    create_prompt(
        tenant=alice.tenant,
        slug="shop-report",
        text=PromptText(template="Report {{shop.charge amount='5'}}"),
        available=tools_of(alice.tenant),
    )
    model.script(ask(("shop-report", {})), say("reported"), say("Done."))
    run = start("?", available=tools_of(alice.tenant), tools=["shop-report"])
    advance(run, tools_of=tools_of_run)
    assert server.requests[0].json["arguments"] == {"amount": 5}
    assert '"charged"' in model.requests[1].messages[-1]["content"]
