"""Agents keep what they were; runs say which version they were made by."""

import pytest
from django.db import IntegrityError, transaction

from agents.models import AgentVersion

pytestmark = pytest.mark.django_db

PATH = "/api/v1/agents"


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def agent(client):
    body = {"slug": "helper", "name": "Helper", "instructions": "Be brief.", "tools": ["today"]}
    return client.post(PATH, body).json()


def versions(client, agent):
    return client.get(f"{PATH}/{agent['id']}/versions").json()["data"]


def test_every_change_of_what_it_does_is_a_new_version(client, agent):
    path = f"{PATH}/{agent['id']}"
    assert agent["version"] == 1
    assert client.patch(path, {"name": "Another name"}).json()["version"] == 1
    changed = client.patch(path, {"instructions": "Be long.", "prefer": "cost"}).json()
    assert (changed["version"], changed["prefer"]) == (2, "cost")
    newest, first = versions(client, agent)
    assert (newest["number"], newest["instructions"], newest["prefer"]) == (2, "Be long.", "cost")
    assert (first["number"], first["instructions"], first["tools"]) == (1, "Be brief.", ["today"])


def test_a_run_says_by_which_version_it_was_made(client, agent):
    body = {"agent": "helper", "messages": [{"role": "user", "content": "hi"}]}
    client.patch(f"{PATH}/{agent['id']}", {"max_steps": 3})
    run = client.post("/api/v1/runs", body).json()
    assert (run["agent"], run["agent_version"], run["max_steps"]) == ("helper", 2, 3)
    client.patch(f"{PATH}/{agent['id']}", {"max_steps": 4})
    assert client.get(f"/api/v1/runs/{run['id']}").json()["agent_version"] == 2


def test_an_agent_goes_back_to_what_it_was_by_a_new_version(client, agent):
    path = f"{PATH}/{agent['id']}"
    client.patch(path, {"instructions": "Be long.", "tools": []})
    restored = client.post(f"{path}/versions/1/restore").json()
    assert (restored["version"], restored["instructions"]) == (3, "Be brief.")
    assert restored["tools"] == ["today"]
    assert client.post(f"{path}/versions/9/restore").status_code == 404


def test_the_database_refuses_to_change_a_version(client, agent):
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        AgentVersion.objects.update(instructions="Be something else.")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "nonsense"}, "no valid JSON Schema"),
        ({"$ref": "https://schemas.example.test/a.json"}, "leads nowhere"),
        ({"type": "object", "patternProperties": {"(a+)+$": {}}}, "not supported"),
    ],
)
def test_an_output_schema_that_cannot_be_checked_against_is_refused(client, agent, schema, why):
    answer = client.patch(f"{PATH}/{agent['id']}", {"output_schema": schema})
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]
