"""Endpoints of a tenant's own, and which URLs they may have."""

import pytest

from llmbroker.addresses import AddressPolicy
from tenants.endpoint_urls import endpoint_url
from tenants.errors import InvalidInput, NotFound
from tenants.models import Endpoint
from tenants.services.endpoints import add_endpoint, update_endpoint

BODY = {"name": "mine", "base_url": "https://api.example.test/v1", "model": "m1"}

BLOCKED = [
    "http://api.example.test/v1",
    "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/",
    "https://[::ffff:169.254.169.254]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://2852039166/",
    "https://0x7f000001:6379/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://[::1]/",
    "https://[fd00:ec2::254]/",
    "https://100.100.100.200/",
    "https://0.0.0.0/",
    "https://localhost/v1",
    "https://db/v1",
    "https://metadata.google.internal/",
    "https://METADATA.GOOGLE.INTERNAL./",
    "https://printer.local/",
    "https://user:pw@10.0.0.1#@api.example.test/v1",
    "https://key@api.example.test/v1",
    "https://api.example.test/v1?key=sk-fake-7Hq2mZ0pTENANTA93xLw",
    "https://api.example.test/v1#fragment",
    "https://api.example.test/v1?",
    "https://api.example.test:0/v1",
    "https://api.example.test:99999/v1",
    "https://api.example.test\\@evil.example.test/",
    "https://api.example.test/v1\r\nX-Evil: 1",
    "https:///v1",
    "https://",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "https://пример.рф/v1",
    "api.example.test/v1",
    "",
]


@pytest.mark.parametrize("url", BLOCKED)
def test_urls_that_lead_inside_or_carry_a_key_are_refused_without_repeating_them(url):
    with pytest.raises(InvalidInput) as refused:
        endpoint_url(url, policy=AddressPolicy())
    assert "sk-fake" not in str(refused.value)
    assert refused.value.param == "base_url"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.test/v1",
        "https://API.EXAMPLE.TEST./v1",
        "https://xn--e1afmkfd.xn--p1ai:8443/v1",
    ],
)
def test_public_names_are_taken(url):
    assert endpoint_url(url, policy=AddressPolicy()) == url


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:11434/v1", "http://localhost:1234/v1", "https://[::1]:8000/v1"]
)
def test_an_installation_may_allow_its_own_network(url):
    assert endpoint_url(f"{url}/", policy=AddressPolicy(private=True)) == url


@pytest.mark.parametrize(
    "url", ["http://user@127.0.0.1/v1", "file:///etc/passwd", "http://127.0.0.1/v1?key=x"]
)
def test_even_there_a_url_holds_no_key_and_is_http(url):
    with pytest.raises(InvalidInput):
        endpoint_url(url, policy=AddressPolicy(private=True))


def test_an_endpoint_is_ones_own_unless_an_admin_says_shared(api, alice, bob):
    own = api(bob.token).post("/api/v1/endpoints", BODY)
    assert (own.status_code, own.json()["scope"]) == (201, str(bob.scope.pk))
    everybodys = api(alice.token).post(
        "/api/v1/endpoints", {**BODY, "name": "ours", "scope": "shared"}
    )
    assert (everybodys.status_code, everybodys.json()["scope"]) == (201, None)
    names = [row["name"] for row in api(bob.token).get("/api/v1/endpoints").json()["data"]]
    assert names == ["ours", "mine"]
    assert [row["name"] for row in api(alice.token).get("/api/v1/endpoints").json()["data"]] == [
        "ours"
    ]


def test_an_endpoint_is_changed_and_deleted(api, alice):
    path = f"/api/v1/endpoints/{api(alice.token).post('/api/v1/endpoints', BODY).json()['id']}"
    changed = api(alice.token).patch(path, {"weight": 0.9, "enabled": False, "parallel": 4})
    assert (changed.json()["weight"], changed.json()["enabled"], changed.json()["model"]) == (
        0.9,
        False,
        "m1",
    )
    assert api(alice.token).delete(path).status_code == 204
    assert api(alice.token).get(path).status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "http://127.0.0.1/v1"),
        ("name", "Not A Slug"),
        ("name", "a/b"),
        ("name", ""),
        ("model", ""),
        ("model", "a\x00b"),
        ("model", None),
        ("api_key_ref", "sk-fake-key"),
        ("weight", 1.1),
        ("weight", -0.1),
        ("weight", "x"),
        ("parallel", 0),
        ("parallel", 2**40),
        ("context_window", 0),
        ("enabled", "perhaps"),
    ],
)
def test_a_wrong_field_is_named(api, alice, field, value):
    answer = api(alice.token).post("/api/v1/endpoints", {**BODY, field: value})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
    assert not Endpoint.objects.exists()


def test_a_name_is_given_once_in_a_tenant(api, alice, bob, charlie):
    assert api(alice.token).post("/api/v1/endpoints", BODY).status_code == 201
    assert api(bob.token).post("/api/v1/endpoints", BODY).status_code == 409
    assert api(charlie.token).post("/api/v1/endpoints", BODY).status_code == 201


def test_the_service_refuses_a_scope_of_another_tenant(alice, charlie):
    with pytest.raises(NotFound):
        add_endpoint(tenant=alice.tenant, scope=charlie.scope, values=BODY)
    endpoint = add_endpoint(tenant=alice.tenant, scope=None, values=BODY)
    with pytest.raises(NotFound):
        update_endpoint(endpoint=endpoint, values={"scope": charlie.scope})
