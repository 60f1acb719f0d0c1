"""Every route of the agents, called with a token of one tenant and the ids of another."""

import pytest
from django.utils import timezone

from agents.models import (
    Agent,
    Event,
    HttpTool,
    McpServer,
    PromptVersion,
    Run,
    Schedule,
    Step,
    Thread,
    WebhookDelivery,
    WebhookEndpoint,
)
from agents.services.definitions import create_agent
from agents.services.http_tools import create_http_tool
from agents.services.mcp_servers import create_mcp_server
from agents.services.prompts import PromptText, create_prompt
from agents.services.schedules import create_schedule
from agents.services.webhook_endpoints import create_webhook_endpoint
from agents.urls import urlpatterns
from tenants.caller import Caller
from tenants.roles import ALL
from tests.support.model_server import ask, say

pytestmark = pytest.mark.django_db

SAID = {"role": "user", "content": "hi"}
BODY = {"messages": [SAID]}
YES = {"tool_call_id": "c", "decision": "approve"}
OUT = {"tool_call_id": "c", "output": "mine"}
SCHEDULE = {"name": "mine", "cron": "0 9 * * *", "request": BODY}
HOOK = "https://hooks.example.com/x"
HTTP_TOOL = {
    "slug": "acmes-tool",
    "url": "https://tools.example.com/x",
    "parameters": {"type": "object", "properties": {}},
}
MCP_SERVER = {"plugin": "acmes_mcp", "url": "https://mcp.invalid/acmes-url"}

# route, method, path with {run} and {agent} of alice's, body, what an intruder gets
ROUTES = [
    ("agents", "get", "/agents", None, "empty"),
    ("agents", "post", "/agents", {"slug": "acmes", "name": "Mine"}, "own"),
    ("agent", "get", "/agents/{agent}", None, 404),
    ("agent", "patch", "/agents/{agent}", {"name": "Taken over"}, 404),
    ("agent", "delete", "/agents/{agent}", None, 404),
    ("tools", "get", "/tools", None, "public"),
    ("http-tools", "get", "/http_tools", None, "empty"),
    ("http-tools", "post", "/http_tools", {**HTTP_TOOL, "slug": "acmes-new"}, "own"),
    ("http-tool", "get", "/http_tools/{http_tool}", None, 404),
    ("http-tool", "patch", "/http_tools/{http_tool}", {"timeout": 1}, 404),
    ("http-tool", "delete", "/http_tools/{http_tool}", None, 404),
    ("http-tool-secret", "post", "/http_tools/{http_tool}/secret", None, 404),
    ("mcp-servers", "get", "/mcp_servers", None, "empty"),
    ("mcp-servers", "post", "/mcp_servers", {**MCP_SERVER, "plugin": "acmes_new"}, "own"),
    ("mcp-server", "get", "/mcp_servers/{mcp_server}", None, 404),
    ("mcp-server", "patch", "/mcp_servers/{mcp_server}", {"timeout": 1}, 404),
    ("mcp-server", "delete", "/mcp_servers/{mcp_server}", None, 404),
    ("mcp-server-refresh", "post", "/mcp_servers/{mcp_server}/refresh", None, 404),
    ("prompts", "get", "/prompts", None, "empty"),
    ("prompts", "post", "/prompts", {"slug": "acmes-prompt", "template": "mine"}, "own"),
    ("prompt", "get", "/prompts/acmes-prompt", None, 404),
    ("prompt", "delete", "/prompts/acmes-spare", None, 404),
    ("prompt-versions", "get", "/prompts/acmes-prompt/versions", None, 404),
    ("prompt-versions", "post", "/prompts/acmes-prompt/versions", {"template": "x"}, 404),
    ("prompt-version", "get", "/prompts/acmes-prompt/versions/1", None, 404),
    ("prompt-render", "post", "/prompts/acmes-prompt/render", {}, 404),
    ("runs", "get", "/runs", None, "empty"),
    ("runs", "post", "/runs", {**BODY, "tools": ["acmes-prompt"]}, 400),
    ("runs", "get", "/runs?after=ffffffff-ffff-ffff-ffff-ffffffffffff", None, "empty"),
    ("runs", "post", "/runs", {**BODY, "agent": "acmes"}, 404),
    ("runs", "post", "/runs", {**BODY, "trace_id": "acmes-trace"}, "own"),
    ("run", "get", "/runs/{run}", None, 404),
    ("run-steps", "get", "/runs/{run}/steps", None, 404),
    ("run-events", "get", "/runs/{run}/events", None, 404),
    ("run-cancel", "post", "/runs/{run}/cancel", None, 404),
    ("run-retry", "post", "/runs/{run}/retry", {"step": 1}, 404),
    ("runs-cancel", "post", "/runs/cancel", {"agent": "acmes"}, "public"),
    ("run-approvals", "post", "/runs/{run}/approvals", {"approvals": [YES]}, 404),
    ("run-tool-outputs", "post", "/runs/{run}/submit_tool_outputs", {"tool_outputs": [OUT]}, 404),
    ("agent-versions", "get", "/agents/{agent}/versions", None, 404),
    ("agent-version-restore", "post", "/agents/{agent}/versions/1/restore", None, 404),
    ("schedules", "get", "/schedules", None, "empty"),
    ("schedules", "post", "/schedules", SCHEDULE, "own"),
    ("schedule", "get", "/schedules/{schedule}", None, 404),
    ("schedule", "patch", "/schedules/{schedule}", {"name": "Taken over"}, 404),
    ("schedule", "delete", "/schedules/{schedule}", None, 404),
    ("threads", "get", "/threads", None, "empty"),
    ("threads", "post", "/threads", {}, "own"),
    ("thread", "get", "/threads/{thread}", None, 404),
    ("thread", "delete", "/threads/{thread}", None, 404),
    ("thread-messages", "get", "/threads/{thread}/messages", None, 404),
    ("thread-messages", "post", "/threads/{thread}/messages", {"message": SAID}, 404),
    ("thread-runs", "get", "/threads/{thread}/runs", None, 404),
    ("thread-runs", "post", "/threads/{thread}/runs", BODY, 404),
    ("webhook-endpoints", "get", "/webhook_endpoints", None, "empty"),
    ("webhook-endpoints", "post", "/webhook_endpoints", {"url": HOOK}, "own"),
    ("webhook-endpoint", "get", "/webhook_endpoints/{webhook}", None, 404),
    ("webhook-endpoint", "patch", "/webhook_endpoints/{webhook}", {"description": "mine"}, 404),
    ("webhook-endpoint", "delete", "/webhook_endpoints/{webhook}", None, 404),
    ("webhook-endpoint-secret", "post", "/webhook_endpoints/{webhook}/secret", {}, 404),
    ("webhook-deliveries", "get", "/webhook_endpoints/{webhook}/deliveries", None, 404),
    (
        "webhook-delivery-replay",
        "post",
        "/webhook_endpoints/{webhook}/deliveries/{delivery}/replay",
        None,
        404,
    ),
]

# Nothing of the run waits for a word, and these names are taken: the owner is told so.
CONFLICTS = {
    ("agents", "post"), ("prompts", "post"), ("run-approvals", "post"),
    ("run-tool-outputs", "post"), ("run-retry", "post"),
}  # fmt: skip

WORDS = {"acmes-name", "acmes-question", "acmes-answer", "acmes-thought", "acmes-template"}
WORDS |= {"acmes-tool", "acmes-prompt", "acmes_mcp", "acmes-hook"}


@pytest.fixture
def acmes(alice, native, model, start, advance):
    """Rows of alice's: an agent, a finished run and a queued one, all marked."""
    for slug in ("acmes-prompt", "acmes-spare"):
        create_prompt(
            tenant=alice.tenant,
            slug=slug,
            text=PromptText(template="acmes-template"),
            available=native,
        )
    values = {"slug": "acmes", "name": "acmes-name", "instructions": "acmes-words"}
    agent = create_agent(tenant=alice.tenant, available=native, values=values)
    model.script(ask(("today", {}), text="acmes-thought"), say("acmes-answer"))
    options = {"agent": "acmes", "tools": ["today"], "trace_id": "acmes-trace"}
    advance(start("acmes-question", **options))
    http_tool = create_http_tool(tenant=alice.tenant, values=dict(HTTP_TOOL)).tool
    mcp_server = create_mcp_server(tenant=alice.tenant, values=dict(MCP_SERVER))
    schedule = create_schedule(
        caller=Caller(alice.tenant, alice.scope, alice.user, None, ALL),
        values={**SCHEDULE, "name": "acmes-name"},
        now=timezone.now(),
    )
    webhook = create_webhook_endpoint(tenant=alice.tenant, values={"url": f"{HOOK}/acmes-hook"})
    delivery = WebhookDelivery.objects.create(
        tenant=alice.tenant,
        endpoint=webhook.endpoint,
        event=Event.objects.first(),
        status="delivered",
        next_attempt_at=None,
        ended_at=timezone.now(),
    )
    return {
        "schedule": schedule.id,
        "thread": Thread.objects.create(tenant=alice.tenant, scope=alice.scope).id,
        "webhook": webhook.endpoint.id,
        "delivery": delivery.id,
        "agent": agent.id,
        "mcp_server": mcp_server.id,
        "http_tool": http_tool.id,
        "run": start("acmes-question", **options).id,
    }


def rows(tenant):
    return [
        list(Agent.objects.filter(tenant=tenant).order_by("id").values()),
        list(HttpTool.objects.filter(tenant=tenant).order_by("id").values()),
        list(McpServer.objects.filter(tenant=tenant).order_by("id").values()),
        list(PromptVersion.objects.filter(prompt__tenant=tenant).order_by("id").values()),
        list(Run.objects.filter(tenant=tenant).order_by("id").values()),
        list(Schedule.objects.filter(tenant=tenant).order_by("id").values()),
        list(Thread.objects.filter(tenant=tenant).order_by("id").values()),
        list(WebhookEndpoint.objects.filter(tenant=tenant).order_by("id").values()),
        list(WebhookDelivery.objects.filter(tenant=tenant).order_by("id").values()),
        list(Step.objects.filter(run__tenant=tenant).order_by("id").values()),
        list(Event.objects.filter(run__tenant=tenant).order_by("id").values()),
    ]


def send(client, route, ids):
    _, method, path, body, _ = route
    return getattr(client, method)("/api/v1" + path.format(**ids), body)


def test_the_table_names_every_route_and_method():
    methods = {
        (pattern.name, method)
        for pattern in urlpatterns
        for method in pattern.callback.view_class.required_permissions
    }
    assert {(route[0], route[1].upper()) for route in ROUTES} == methods


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route[1:3]))
def test_another_tenant_learns_and_changes_nothing(route, acmes, api, acme, charlie):
    before = rows(acme)
    answer = send(api(charlie.token), route, acmes)
    expected = route[-1]
    if expected == 404:
        assert answer.status_code == 404
        assert answer.json()["error"]["type"] == "not_found_error"
    elif expected == 400:
        assert answer.json()["error"]["code"] == "unknown_tool"
    else:
        assert answer.status_code in {200, 201, 202}
    if expected == "empty":
        assert answer.json()["data"] == []
    for word in WORDS - {word for word in WORDS if word in str(route[3])}:
        assert word.encode() not in answer.content
    assert str(acmes["run"]).encode() not in answer.content
    assert rows(acme) == before


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route[1:3]))
def test_the_owner_gets_through(route, acmes, api, alice):
    expected = 409 if route[:2] in CONFLICTS else None
    answer = send(api(alice.token), route, acmes)
    assert answer.status_code == expected or answer.status_code in {200, 201, 202, 204}


@pytest.mark.parametrize("route", [route for route in ROUTES if "{run}" in route[2]])
def test_a_colleague_does_not_see_another_scopes_runs(route, acmes, api, acme, bob):
    before = rows(acme)
    assert send(api(bob.token), route, acmes).status_code == 404
    assert rows(acme) == before


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route[1:3]))
def test_nobody_gets_nothing(route, acmes, api, acme):
    before = rows(acme)
    assert send(api(), route, acmes).status_code == 401
    assert rows(acme) == before
