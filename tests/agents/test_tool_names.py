"""One namespace for tools of all kinds, also when two are made at the same moment."""

import threading

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import HttpTool, McpServer, PromptFunction
from agents.services.definitions import create_agent
from agents.services.http_tools import create_http_tool
from agents.services.mcp_servers import create_mcp_server
from agents.services.prompts import PromptText, create_prompt
from agents.tool_sources.catalog import tools_of
from tenants.context import all_tenants
from tenants.errors import Conflict

HTTP_TOOL = {
    "slug": "shop-charge",
    "url": "https://tools.example.com/x",
    "parameters": {"type": "object"},
}


def make_prompt(tenant, slug="shop-charge"):
    text = PromptText(template="x")
    create_prompt(tenant=tenant, slug=slug, text=text, available=tools_of(tenant))


def make_http_tool(tenant):
    create_http_tool(tenant=tenant, values=dict(HTTP_TOOL))


def make_mcp_server(tenant):
    values = {"plugin": "shop", "url": "https://mcp.invalid/mcp"}
    create_mcp_server(tenant=tenant, values=values)


@pytest.mark.django_db(transaction=True)
def test_of_tools_that_are_made_at_once_under_one_name_one_is_stored(alice):
    together = threading.Barrier(3)
    refused = []

    def make(work):
        together.wait(10)
        try:
            with all_tenants("tests", routine=True):
                work(alice.tenant)
        except Conflict as error:
            refused.append(error.code)
        finally:
            connection.close()

    kinds = (make_prompt, make_http_tool, make_mcp_server)
    threads = [threading.Thread(target=make, args=(work,)) for work in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert refused == ["tool_name_taken"] * 2
    models = (PromptFunction, HttpTool, McpServer)
    assert sum(model.objects.count() for model in models) == 1


@pytest.mark.django_db
def test_a_tenant_with_tools_of_every_kind_can_be_deleted(alice):
    make_prompt(alice.tenant, "persona-helper")
    make_http_tool(alice.tenant)
    create_mcp_server(
        tenant=alice.tenant, values={"plugin": "library", "url": "https://mcp.invalid/mcp"}
    )
    values = {"slug": "helper", "name": "Helper", "prompt": "persona-helper"}
    create_agent(tenant=alice.tenant, available=tools_of(alice.tenant), values=values)
    alice.tenant.delete()
    assert not PromptFunction.objects.exists()
    assert not HttpTool.objects.exists()


@pytest.mark.django_db
def test_a_run_with_native_tools_only_reads_no_others(alice, api):
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": ["today", "native-weather"]}
    with CaptureQueriesContext(connection) as queries:
        assert api(alice.token).post("/api/v1/runs", body).status_code == 202
    asked = " ".join(query["sql"] for query in queries)
    for table in ("promptfunction", "httptool", "mcpserver"):
        assert f"agents_{table}" not in asked
