"""The admin's pages for agents and runs."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from agents.models import Agent, HttpTool, McpServer, Run
from agents.sealing import seal
from agents.services.prompts import PromptText, create_prompt
from agents.tool_sources.catalog import tools_of
from journal.models import Call
from tenants.encryption import Secret
from tests.agents.helpers import a_tool
from tests.support.model_server import ask, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client):
    client.force_login(User.objects.create_superuser("root", password="x"))
    return client


@pytest.fixture
def finished(model, complete):
    model.script(
        ask(("echo", {"text": "<script>alert(1)</script>"}), text="Let me <b>think</b>"),
        say("The <i>answer</i> 🌤"),
    )
    return complete("<u>question</u>", tools=[a_tool("echo", lambda text: text)])


def page(admin, run):
    return admin.get(reverse("admin:agents_run_change", args=[run.id])).content.decode()


def test_a_runs_page_shows_its_steps_in_order(admin, finished):
    html = page(admin, finished)
    places = [html.index(text) for text in ("1. model call", "2. tool call: echo", "3. model call")]
    assert places == sorted(places)
    assert "30 tokens" not in html
    assert "15 tokens" in html


def test_what_models_and_tools_say_is_shown_as_text(admin, finished):
    html = page(admin, finished)
    for raw in ("<script>alert", "<b>think", "<i>answer", "<u>question"):
        assert raw not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "Let me &lt;b&gt;think" in html


def test_a_runs_page_saves_nothing(admin, finished):
    before = Run.objects.filter(id=finished.id).values().get()
    url = reverse("admin:agents_run_change", args=[finished.id])
    admin.post(url, {"status": "queued", "output_text": "forged", "_save": ""})
    assert Run.objects.filter(id=finished.id).values().get() == before
    assert 'name="_save"' not in page(admin, finished)


def test_a_run_is_cancelled_from_its_page(admin, start):
    run = start()
    assert "Cancel this run" in page(admin, run)
    url = reverse("admin:agents_run_change", args=[run.id])
    answer = admin.post(url, {"agents_run_cancel": ""}, follow=True)
    assert "The run is cancelled." in answer.content.decode()
    assert Run.objects.get(id=run.id).status == "cancelled"


def test_a_run_that_is_over_has_no_button_to_cancel_it(admin, finished):
    assert "Cancel this run" not in page(admin, finished)


def test_a_runs_page_shows_every_letter_as_itself(admin, start):
    question = "Agar 30 darajadan issiq bo‘lsa, hisobla 🌡"
    assert question in page(admin, start(question))


def test_looking_at_the_cancel_button_does_not_press_it(admin, start):
    run = start()
    admin.get(reverse("admin:agents_run_change", args=[run.id]) + "?agents_run_cancel=")
    assert Run.objects.get(id=run.id).status == "queued"


def test_chosen_runs_are_cancelled_from_the_list(admin, start):
    runs = [start(), start()]
    admin.post(
        reverse("admin:agents_run_changelist"),
        {"action": "cancel_chosen", "_selected_action": [run.id for run in runs]},
    )
    assert set(Run.objects.values_list("status", flat=True)) == {"cancelled"}


def test_a_runs_page_shows_what_its_calls_cost_and_who_paid(admin, finished):
    assert "holds no call of this run" in page(admin, finished)
    place = {"tenant_id": finished.tenant_id, "scope_id": finished.scope_id}
    for step, cost in ((1, 1500), (3, None)):
        Call.objects.create(
            **place,
            run=str(finished.id),
            step=step,
            ts=timezone.now(),
            llm_name="tested",
            status="ok",
            cost_micros=cost,
            key_source="shared",
        )
    html = page(admin, finished)
    assert "$0.001500, and 1 of unknown cost" in html
    assert len(re.findall(r">\s*shared\s*</td>", html)) == 2


def test_a_run_goes_on_as_another_one_from_a_chosen_model_call(admin, finished, model, advance):
    url = reverse("admin:agents_run_change", args=[finished.id])
    assert page(admin, finished).count("Retry from here") == 2
    answer = admin.post(url, {"retry_from": "3"}, follow=True)
    assert "Goes on as" in answer.content.decode()
    new = Run.objects.exclude(id=finished.id).get()
    assert (new.status, new.metadata) == ("queued", {"retry_of": str(finished.id)})
    model.script(say("Another answer"))
    after = advance(new)
    assert (after.status, after.output_text) == ("completed", "Another answer")
    assert [step.kind for step in after.steps.all()] == ["model_call", "tool_call", "model_call"]
    assert model.requests[-1].messages[-1]["role"] == "tool"


def test_a_run_is_retried_from_its_model_calls_only_and_when_it_is_over(admin, finished, start):
    going = start()
    for run, step in ((finished, "2"), (finished, "9"), (going, "1")):
        admin.post(reverse("admin:agents_run_change", args=[run.id]), {"retry_from": step})
    assert Run.objects.count() == 2


@pytest.mark.parametrize("of", ["id", "scope_id", "tenant_id", "trace_id"])
def test_a_run_is_found_by_its_ids(admin, start, of):
    run = start(trace_id="trace-1")
    found = admin.get(reverse("admin:agents_run_changelist"), {"q": str(getattr(run, of))})
    assert str(run.id) in found.content.decode()
    none = admin.get(reverse("admin:agents_run_changelist"), {"q": "trace-2"})
    assert str(run.id) not in none.content.decode()


def test_runs_are_neither_added_nor_deleted_here(admin, start):
    run = start()
    assert admin.get(reverse("admin:agents_run_add")).status_code == 403
    assert admin.post(reverse("admin:agents_run_delete", args=[run.id])).status_code == 403


def agent_form(acme, **values):
    return {
        "tenant": acme.id, "slug": "helper", "name": "Helper", "instructions": "Be brief.",
        "prefer": "quality",
        "tools": ["native-today"], "max_steps": 4, "operation": "", **values,
    }  # fmt: skip


def test_an_agent_is_defined_with_tools_to_tick(admin, acme):
    url = reverse("admin:agents_agent_add")
    assert 'value="native-weather"' in admin.get(url).content.decode()
    assert admin.post(url, agent_form(acme)).status_code == 302
    agent = Agent.objects.get()
    assert (agent.tenant, agent.tools, agent.max_steps) == (acme, ["native-today"], 4)
    change = reverse("admin:agents_agent_change", args=[agent.id])
    admin.post(change, agent_form(acme, tools=["native-calculate", "native-weather"]))
    assert Agent.objects.get().tools == ["native-calculate", "native-weather"]


def test_a_slug_that_is_taken_is_a_message(admin, acme):
    url = reverse("admin:agents_agent_add")
    admin.post(url, agent_form(acme))
    answer = admin.post(url, agent_form(acme), follow=True)
    assert answer.status_code == 200
    assert "already" in answer.content.decode()
    assert Agent.objects.count() == 1


SECRET = "admin-token-marker-8b2f6d"


def test_a_new_http_tools_secret_is_shown_in_one_page(admin, acme):
    url = reverse("admin:agents_httptool_add")
    form = {
        "tenant": acme.id, "slug": "shop-charge", "description": "", "timeout": 5,
        "url": "https://tools.example.com/x", "parameters": '{"type": "object"}', "effect": "once",
        "enabled": "on",
    }  # fmt: skip
    assert "whsec_" in admin.post(url, form).content.decode()
    tool = HttpTool.objects.get()
    change = reverse("admin:agents_httptool_change", args=[tool.id])
    listed = reverse("admin:agents_httptool_changelist")
    for page in (change, listed):
        assert "whsec_" not in admin.get(page).content.decode()
    sealed = bytes(tool.sealed)
    assert admin.post(change, {**form, "timeout": 7}).status_code == 302
    tool.refresh_from_db()
    assert (tool.timeout, bytes(tool.sealed)) == (7, sealed)
    wrong = admin.post(change, {**form, "parameters": '{"type": "string"}'})
    assert "Arguments are an object" in wrong.content.decode()


def test_an_mcp_servers_token_goes_in_and_never_out(admin, acme):
    url = reverse("admin:agents_mcpserver_add")
    form = {
        "tenant": acme.id, "plugin": "library", "url": "https://mcp.invalid/mcp", "timeout": 5,
        "auth_header": "Authorization", "allowed_tools": "", "enabled": "on", "auth_token": SECRET,
        "requires_approval": "burn_book,lend.book",
    }  # fmt: skip
    assert admin.post(url, form).status_code == 302
    server = McpServer.objects.get()
    assert SECRET.encode() not in bytes(server.sealed)
    assert server.requires_approval == ["burn_book", "lend.book"]
    change = reverse("admin:agents_mcpserver_change", args=[server.id])
    admin.post(change, {**form, "auth_token": "", "timeout": 7})
    kept = McpServer.objects.get()
    assert (kept.timeout, bytes(kept.sealed)) == (7, bytes(server.sealed))
    for page in (change, reverse("admin:agents_mcpserver_changelist")):
        assert SECRET not in admin.get(page).content.decode()


def test_a_secret_that_does_not_open_never_breaks_the_list(admin, acme):
    server = McpServer(tenant=acme, plugin="library", url="https://mcp.invalid/mcp")
    seal(server, Secret(SECRET))
    server.sealed = bytes(server.sealed)[:-1] + b"x"
    server.save()
    listed = admin.get(reverse("admin:agents_mcpserver_changelist"))
    assert "needs re-entry" in listed.content.decode()


def test_prompts_are_read_with_their_versions(admin, acme):
    text = PromptText(template="<b>{{$x}}</b>")
    version = create_prompt(tenant=acme, slug="a-b", text=text, available=tools_of(acme))
    url = reverse("admin:agents_promptfunction_change", args=[version.prompt_id])
    html = admin.get(url).content.decode()
    assert "&lt;b&gt;{{$x}}" in html
    assert "<b>{{$x}}" not in html
    assert admin.get(reverse("admin:agents_promptfunction_add")).status_code == 403
