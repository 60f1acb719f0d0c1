"""Agents and tools over HTTP."""

import pytest

from agents.models import Agent, Run

pytestmark = pytest.mark.django_db

HELPER = {
    "slug": "helper",
    "name": "Ёрдамчи 🤖",
    "instructions": "  Be brief.\n",
    "tools": ["today", "weather"],
    "max_steps": 5,
    "operation": "help",
}


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def helper(client):
    return client.post("/api/v1/agents", HELPER).json()


def test_an_agent_is_defined_and_shown(client, helper):
    assert {name: helper[name] for name in HELPER} == HELPER
    assert client.get(f"/api/v1/agents/{helper['id']}").json() == helper
    assert client.get("/api/v1/agents").json()["data"] == [helper]


def test_an_agent_changes_and_its_runs_do_not(client, helper):
    body = {"agent": "helper", "messages": [{"role": "user", "content": "Hi"}]}
    before = client.post("/api/v1/runs", body).json()
    changed = client.patch(
        f"/api/v1/agents/{helper['id']}", {"instructions": "Be long.", "tools": []}
    ).json()
    assert (changed["instructions"], changed["tools"], changed["name"]) == (
        "Be long.",
        [],
        HELPER["name"],
    )
    assert client.get(f"/api/v1/runs/{before['id']}").json() == before
    assert before["messages"][0] == {"role": "system", "content": "  Be brief.\n"}
    assert (before["tools"], before["max_steps"]) == (["today", "weather"], 5)
    assert (before["operation"], before["agent"]) == ("help", "helper")


def test_what_a_run_says_itself_comes_before_its_agent(client, helper):
    body = {
        "agent": "helper",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [],
        "max_steps": 2,
        "operation": "other",
    }
    run = client.post("/api/v1/runs", body).json()
    assert (run["tools"], run["max_steps"], run["operation"]) == ([], 2, "other")


def test_a_deleted_agent_leaves_its_runs(client, helper):
    body = {"agent": "helper", "messages": [{"role": "user", "content": "Hi"}]}
    run = client.post("/api/v1/runs", body).json()
    assert client.delete(f"/api/v1/agents/{helper['id']}").status_code == 204
    assert client.get(f"/api/v1/agents/{helper['id']}").status_code == 404
    assert client.get(f"/api/v1/runs/{run['id']}").json()["agent"] is None
    assert Run.objects.count() == 1


def test_a_slug_is_taken_once_per_tenant(client, helper, api, charlie):
    answer = client.post("/api/v1/agents", HELPER)
    assert (answer.status_code, answer.json()["error"]["param"]) == (409, "slug")
    assert api(charlie.token).post("/api/v1/agents", HELPER).status_code == 201


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"slug": "No Spaces"}, "slug"),
        ({"name": ""}, "name"),
        ({"tools": ["nosuch"]}, "tools"),
        ({"max_steps": 0}, "max_steps"),
        ({"tenant": "other"}, "tenant"),
        ({"id": "11111111-1111-4111-8111-111111111111"}, "id"),
    ],
)
def test_what_makes_no_sense_is_refused(client, helper, change, param):
    for answer in (
        client.post("/api/v1/agents", {**HELPER, "slug": "other", **change}),
        client.patch(f"/api/v1/agents/{helper['id']}", change),
    ):
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert Agent.objects.get().slug == "helper"


def test_members_run_agents_and_admins_define_them(api, bob, client, helper):
    member = api(bob.token)
    assert member.get("/api/v1/agents").json()["data"] == [helper]
    body = {"agent": "helper", "messages": [{"role": "user", "content": "Hi"}]}
    assert member.post("/api/v1/runs", body).status_code == 202
    url = f"/api/v1/agents/{helper['id']}"
    for answer in (
        member.post("/api/v1/agents", {**HELPER, "slug": "mine"}),
        member.patch(url, {"name": "Mine"}),
        member.delete(url),
    ):
        assert answer.status_code == 403
    assert client.get(url).json() == helper


def test_tools_are_listed_with_what_models_read(client):
    body = client.get("/api/v1/tools").json()
    tools = {tool["name"]: tool for tool in body["data"]}
    assert tools.keys() >= {"native-today", "native-weather", "native-calculate"}
    assert tools["native-weather"]["parameters"]["required"] == ["city"]
    assert tools["native-weather"]["effect"] == "pure"
    assert tools["native-weather"]["description"]
    assert (tools["native-weather"]["source"], tools["native-weather"]["aliases"]) == (
        "native",
        ["weather"],
    )
