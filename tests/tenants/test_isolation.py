"""Two tenants: the intruder walks every route with the other's ids."""

import json
from dataclasses import dataclass

import pytest
from django.db import connection

from tenants.encryption import Secret
from tenants.models import Tenant
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key
from tenants.services.tokens import create_token
from tenants.urls import urlpatterns

TABLES = [
    "tenants_tenant", "tenants_membership", "tenants_scope", "tenants_datakey",
    "tenants_providerkey", "tenants_accesstoken", "tenants_endpoint",
]  # fmt: skip


@dataclass
class Property:
    """One of everything that acme has, in its personal and its shared scope."""

    tenant: Tenant
    key_id: list
    token_id: list
    endpoint_id: list


@pytest.fixture
def belongings(alice):
    scopes = (alice.scope, alice.shared)
    keys = [
        add_key(scope=each, ref="A_KEY", value=Secret("acme-secret-key-value")) for each in scopes
    ]
    tokens = [
        create_token(scope=each, name="t", permissions=["runs:read"], created_by=alice.user)
        for each in scopes
    ]
    url = {"base_url": "https://api.example.test/v1", "model": "m", "api_key_ref": "A_KEY"}
    endpoints = [
        add_endpoint(tenant=alice.tenant, scope=each, values={"name": name, **url})
        for each, name in ((alice.scope, "own"), (None, "all"))
    ]
    return Property(
        alice.tenant,
        [each.pk for each in keys],
        [each.row.pk for each in tokens],
        [each.pk for each in endpoints],
    )


def rows_of(tenant):
    """Every column of every row of a tenant, but when a token was last used."""
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            column = "id" if table == "tenants_tenant" else "tenant_id"
            query = f"SELECT to_jsonb(t) - 'last_used_at' FROM {table} t"  # noqa: S608
            cursor.execute(f"{query} WHERE {column} = %s ORDER BY id", [tenant.pk])
            found[table] = cursor.fetchall()
    return found


def bodies(alice):
    """Bodies that name what is acme's, or try to set what the server sets."""
    key = {"ref": "A_KEY", "value": "x" * 30}
    token = {"name": "t", "permissions": ["runs:read"]}
    endpoint = {"name": "mine", "base_url": "https://api.example.test/v1", "model": "m"}
    theirs = [str(alice.scope.pk), str(alice.shared.pk)]
    return {
        "keys": [{**key, "scope": scope} for scope in theirs],
        "tokens": [{**token, "scope": scope} for scope in theirs],
        "endpoints": [{**endpoint, "scope": scope} for scope in theirs],
    }


CHANGES = {
    "key": [{"label": "mine now"}, {"value": "y" * 30}, {"status": "disabled"}],
    "endpoint": [{"base_url": "https://evil.example.test/v1"}, {"enabled": False}],
    "token": [{}],
}


# Every route of every app is walked by tests/isolation; here are the details of these.
DETAILS = [each for each in urlpatterns if each.name in CHANGES]
LISTS = [each for each in urlpatterns if each.name in {"keys", "tokens", "endpoints", "scopes"}]


@pytest.mark.parametrize("pattern", DETAILS, ids=lambda pattern: pattern.name)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_the_intruder_finds_nothing_under_the_others_ids(api, charlie, belongings, pattern, method):
    path, _, rest = str(pattern.pattern).partition("<")
    parameter = rest.removeprefix("uuid:").rstrip(">")
    before = rows_of(belongings.tenant)
    for pk in getattr(belongings, parameter):
        for body in CHANGES[pattern.name] if method == "PATCH" else [None]:
            answer = getattr(api(charlie.token), method.lower())(f"/api/v1/{path}{pk}", body)
            if answer.status_code != 405:
                assert answer.status_code == 404
                assert answer.json()["error"]["type"] == "not_found_error"
    assert rows_of(belongings.tenant) == before


@pytest.mark.parametrize("pattern", LISTS, ids=lambda pattern: pattern.name)
def test_the_intruders_lists_hold_nothing_of_the_others(api, alice, charlie, belongings, pattern):
    theirs = {
        str(each) for each in (*belongings.key_id, *belongings.token_id, *belongings.endpoint_id)
    }
    theirs |= {str(alice.scope.pk), str(alice.shared.pk)}
    listed = api(charlie.token).get(f"/api/v1/{pattern.pattern}").json()["data"]
    assert not theirs & {row["id"] for row in listed}
    assert theirs & {
        row["id"] for row in api(alice.token).get(f"/api/v1/{pattern.pattern}").json()["data"]
    }


@pytest.mark.parametrize("route", ["keys", "tokens", "endpoints"])
def test_the_intruder_cannot_write_into_the_others_scopes(api, alice, charlie, belongings, route):
    before = rows_of(alice.tenant), rows_of(charlie.tenant)
    for body in bodies(alice)[route]:
        answer = api(charlie.token).post(f"/api/v1/{route}", body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "scope")
    assert (rows_of(alice.tenant), rows_of(charlie.tenant)) == before


def test_a_cursor_of_the_other_tenant_shows_nothing_of_it(api, alice, charlie, belongings):
    for key in belongings.key_id:
        answer = api(charlie.token).get(f"/api/v1/keys?after={key}")
        assert answer.json()["data"] == []


UNCALLED_FOR = {
    "id": "11111111-1111-4111-8111-111111111111",
    "tenant": "globex",
    "tenant_id": "11111111-1111-4111-8111-111111111111",
    "data_key": "11111111-1111-4111-8111-111111111111",
    "created_by": 1,
    "hint": "abcd",
    "last_used_at": None,
    "digest": "00",
    "revoked_at": None,
    "несуществующее": 1,
    "\ud83d": 1,
}


@pytest.mark.parametrize("field", UNCALLED_FOR)
@pytest.mark.parametrize("route", ["keys", "tokens", "endpoints"])
def test_fields_that_only_the_server_writes_are_refused_by_name(api, charlie, alice, route, field):
    body = {**bodies(alice)[route][0], field: UNCALLED_FOR[field]}
    body.pop("scope")
    before = rows_of(charlie.tenant)
    answer = api(charlie.token).post(
        f"/api/v1/{route}", json.dumps(body), content_type="application/json"
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "unknown"
    assert answer.json()["error"]["param"] == field.encode("utf-8", "backslashreplace").decode()
    assert rows_of(charlie.tenant) == before


def test_within_a_tenant_a_member_sees_the_shared_and_not_the_personal(api, alice, bob, belongings):
    listed = {row["id"] for row in api(bob.token).get("/api/v1/keys").json()["data"]}
    own, shared = map(str, belongings.key_id)
    assert listed == {shared}
    assert api(bob.token).get(f"/api/v1/keys/{own}").status_code == 404
    assert api(bob.token).get(f"/api/v1/tokens/{own}").status_code == 405
    assert api(bob.token).delete(f"/api/v1/tokens/{belongings.token_id[0]}").status_code == 404


def test_a_member_cannot_change_what_all_share(api, alice, bob, belongings):
    before = rows_of(alice.tenant)
    client = api(bob.token)
    shared_key, tenant_endpoint = belongings.key_id[1], belongings.endpoint_id[1]
    answers = [
        client.patch(f"/api/v1/keys/{shared_key}", {"value": "z" * 30}),
        client.delete(f"/api/v1/keys/{shared_key}"),
        client.post("/api/v1/keys", {"ref": "A_KEY", "value": "z" * 30, "scope": "shared"}),
        client.patch(f"/api/v1/endpoints/{tenant_endpoint}", {"enabled": False}),
        client.delete(f"/api/v1/endpoints/{tenant_endpoint}"),
        client.post("/api/v1/endpoints", {**bodies(alice)["endpoints"][0], "scope": "shared"}),
        client.post(
            "/api/v1/tokens", {"name": "t", "permissions": ["runs:read"], "scope": "shared"}
        ),
    ]
    assert [answer.status_code for answer in answers] == [403] * len(answers)
    assert rows_of(alice.tenant) == before
