"""Access tokens over REST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tenants.models import AccessToken
from tenants.services.tokens import create_token
from tests.tenants.limit_helpers import limited

BODY = {"name": "ci", "permissions": ["runs:read", "keys:write"]}


def test_a_token_is_shown_once_and_works(api, alice):
    made = api(alice.token).post("/api/v1/tokens", BODY)
    assert made.status_code == 201
    text = made.json()["token"]
    assert made.json()["permissions"] == ["keys:write", "runs:read"]
    assert api(text).get("/api/v1/scopes").status_code == 200
    assert (
        text.rpartition("_")[2][:8] not in api(alice.token).get("/api/v1/tokens").content.decode()
    )


def test_a_revoked_token_stays_listed_and_no_longer_works(api, alice):
    made = api(alice.token).post("/api/v1/tokens", BODY).json()
    assert api(alice.token).delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert api(made["token"]).get("/api/v1/scopes").status_code == 401
    listed = {row["id"]: row for row in api(alice.token).get("/api/v1/tokens").json()["data"]}
    assert listed[made["id"]]["revoked_at"] is not None


def test_a_second_revocation_keeps_the_time_of_the_first(api, alice):
    made = api(alice.token).post("/api/v1/tokens", BODY).json()
    api(alice.token).delete(f"/api/v1/tokens/{made['id']}")
    first = AccessToken.objects.get(pk=made["id"]).revoked_at
    api(alice.token).delete(f"/api/v1/tokens/{made['id']}")
    assert AccessToken.objects.get(pk=made["id"]).revoked_at == first


def test_nobody_grants_what_they_do_not_hold(api, bob):
    answer = api(bob.token).post("/api/v1/tokens", {**BODY, "permissions": ["runs:read", "admin"]})
    assert answer.status_code == 403
    assert answer.json()["error"]["param"] == "permissions"


@pytest.mark.parametrize("permissions", [[], ["all"], "admin", None, ["runs:read", 5], {}])
def test_permissions_are_a_list_of_known_ones(api, alice, permissions):
    answer = api(alice.token).post("/api/v1/tokens", {**BODY, "permissions": permissions})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith("permissions")


def test_an_expiry_in_the_past_is_refused(api, alice):
    answer = api(alice.token).post("/api/v1/tokens", {**BODY, "expires_at": "2020-01-01T00:00:00Z"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "expires_at")


def test_a_token_made_with_a_token_does_not_outlive_it(api, alice):
    end = timezone.now() + timedelta(days=1)
    short = create_token(
        scope=alice.scope,
        name="short",
        permissions=["keys:write"],
        created_by=alice.user,
        expires_at=end,
    )
    client = api(short.text.reveal())
    body = {"name": "heir", "permissions": ["keys:write"]}
    assert client.post("/api/v1/tokens", body).status_code == 403
    later = {**body, "expires_at": (end + timedelta(seconds=1)).isoformat()}
    assert client.post("/api/v1/tokens", later).status_code == 403
    assert client.post("/api/v1/tokens", {**body, "expires_at": end.isoformat()}).status_code == 201


def test_a_token_that_is_limited_makes_none_that_is_not(api, alice):
    limited(alice.tenant, "usd_per_day", "1", token=alice.tenant.access_tokens.get())
    answer = api(alice.token).post("/api/v1/tokens", {"name": "t", "permissions": ["runs:read"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "limited_token")
    assert alice.tenant.access_tokens.count() == 1


def test_an_admin_makes_a_token_of_the_shared_scope(api, alice):
    made = api(alice.token).post("/api/v1/tokens", {**BODY, "scope": "shared"})
    assert made.json()["scope"] == str(alice.shared.pk)


def test_an_admin_sees_and_revokes_the_tokens_of_all_members(api, alice, bob):
    made = api(bob.token).post("/api/v1/tokens", BODY).json()
    assert made["id"] in {
        row["id"] for row in api(alice.token).get("/api/v1/tokens").json()["data"]
    }
    assert api(alice.token).delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert api(made["token"]).get("/api/v1/scopes").status_code == 401
