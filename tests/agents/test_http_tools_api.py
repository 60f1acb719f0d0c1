"""HTTP tools over the API: defined, changed, their secret shown once."""

import pytest

from agents.models import HttpTool

pytestmark = pytest.mark.django_db

CHARGE = {
    "slug": "shop-charge",
    "description": "Charge a card. 💳",
    "url": "https://tools.example.com/charge/",
    "parameters": {
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "required": ["amount"],
    },
    "timeout": 5.0,
}


@pytest.fixture
def client(api, alice):
    return api(alice.token)


@pytest.fixture
def charge(client):
    answer = client.post("/api/v1/http_tools", CHARGE)
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_tool_is_defined_and_its_secret_shown_once(client, charge):
    secret = charge.pop("secret")
    assert secret.startswith("whsec_")
    assert {name: charge[name] for name in CHARGE} == CHARGE
    assert (charge["effect"], charge["enabled"]) == ("once", True)
    path = f"/api/v1/http_tools/{charge['id']}"
    assert client.get(path).json() == charge
    assert client.get("/api/v1/http_tools").json()["data"] == [charge]
    assert secret.encode() not in bytes(HttpTool.objects.get().sealed)


def test_it_is_a_tool_of_the_tenant_until_it_is_switched_off(client, charge, api, bob, charlie):
    def names(token):
        return {tool["name"]: tool for tool in api(token).get("/api/v1/tools").json()["data"]}

    tool = names(bob.token)["shop-charge"]
    assert (tool["source"], tool["effect"]) == ("http", "once")
    assert tool["parameters"] == CHARGE["parameters"]
    assert "shop-charge" not in names(charlie.token)
    path = f"/api/v1/http_tools/{charge['id']}"
    assert client.patch(path, {"enabled": False}).json()["enabled"] is False
    assert "shop-charge" not in names(bob.token)


def test_a_change_keeps_the_secret_and_a_new_secret_is_another(client, charge):
    path = f"/api/v1/http_tools/{charge['id']}"
    sealed = bytes(HttpTool.objects.get().sealed)
    changed = client.patch(path, {"timeout": 2.5, "effect": "idempotent"}).json()
    assert (changed["timeout"], changed["effect"]) == (2.5, "idempotent")
    assert "secret" not in changed
    assert bytes(HttpTool.objects.get().sealed) == sealed
    assert client.post(f"{path}/secret").json()["secret"] != charge["secret"]
    assert bytes(HttpTool.objects.get().sealed) != sealed


def test_a_deleted_tool_is_gone(client, charge):
    path = f"/api/v1/http_tools/{charge['id']}"
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"slug": "charge"}, "slug"),
        ({"url": "http://tools.example.com/x"}, "url"),
        ({"url": "https://10.0.0.1/x"}, "url"),
        ({"url": "https://tools.example.com/x?key=1"}, "url"),
        ({"url": "https://me:pw@tools.example.com/x"}, "url"),
        ({"parameters": {"type": "string"}}, "parameters"),
        ({"parameters": {"type": "object", "properties": {"a": {"type": "no"}}}}, "parameters"),
        ({"parameters": "{}"}, "parameters"),
        ({"effect": "maybe"}, "effect"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": 61}, "timeout"),
        ({"secret": "whsec_mine"}, "secret"),
        ({"sealed": "x"}, "sealed"),
    ],
)
def test_what_makes_no_sense_is_refused(client, change, param):
    answer = client.post("/api/v1/http_tools", {**CHARGE, **change})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert not HttpTool.objects.exists()


def test_a_name_belongs_to_one_tool_of_whatever_kind(client, charge):
    prompt = {"slug": "shop-charge", "template": "x"}
    for answer in (
        client.post("/api/v1/http_tools", CHARGE),
        client.post("/api/v1/http_tools", {**CHARGE, "slug": "native-charge"}),
        client.post("/api/v1/prompts", prompt),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "tool_name_taken")


def test_only_admins_see_and_change_them(api, bob, charge):
    member = api(bob.token)
    path = f"/api/v1/http_tools/{charge['id']}"
    for answer in (
        member.get("/api/v1/http_tools"),
        member.post("/api/v1/http_tools", CHARGE),
        member.get(path),
        member.patch(path, {"timeout": 1}),
        member.delete(path),
        member.post(f"{path}/secret"),
    ):
        assert answer.status_code == 403
