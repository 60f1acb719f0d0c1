"""The audit log: every change of keys, tokens, members, limits and policies, and no secret."""

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, ProgrammingError, transaction
from django.test import Client

from llmbroker.models import ApiKey
from tenants.adapters import _note_refusal
from tenants.context import Reach, scope_active
from tenants.models import AuditEntry, ProviderKey

VALUE = "sk-fake-7Hq2mZ0pTENANTA93xLw"


@pytest.fixture
def log(api, alice):
    """``log()``: the entries that the API shows to the owner, newest first."""
    return lambda: api(alice.token).get("/api/v1/audit").json()["data"]


def test_every_change_over_the_api_is_noted_with_who_made_it(api, alice, log):
    client = api(alice.token)
    key = client.post("/api/v1/keys", {"ref": "A_KEY", "value": VALUE}).json()["id"]
    client.patch(f"/api/v1/keys/{key}", {"value": VALUE + "2", "status": "disabled"})
    client.delete(f"/api/v1/keys/{key}")
    made = client.post("/api/v1/tokens", {"name": "ci", "permissions": ["runs:read"]}).json()
    client.delete(f"/api/v1/tokens/{made['id']}")
    limit = client.post("/api/v1/limits", {"name": "usd_per_day", "limit": "5"}).json()["id"]
    client.delete(f"/api/v1/limits/{limit}")
    client.patch(f"/api/v1/scopes/{alice.scope.pk}", {"key_policy": "own_only"})
    endpoint = {"name": "mine", "base_url": "https://api.example.test/v1", "model": "m"}
    made_endpoint = client.post("/api/v1/endpoints", endpoint).json()["id"]
    client.patch(f"/api/v1/endpoints/{made_endpoint}", {"model": "n"})
    client.delete(f"/api/v1/endpoints/{made_endpoint}")

    noted = [row for row in log() if row["actor"].startswith(f"user {alice.user.pk}, token ")]
    assert [row["action"] for row in reversed(noted)] == [
        "key.added", "key.changed", "key.deleted", "token.created", "token.revoked",
        "limit.set", "limit.deleted", "scope.changed",
        "endpoint.added", "endpoint.changed", "endpoint.deleted",
    ]  # fmt: skip
    changes = {row["action"]: row["changes"] for row in noted}
    assert changes["key.changed"] == {"status": ["active", "disabled"], "value": "changed"}
    assert changes["scope.changed"] == {"key_policy": ["own_then_shared", "own_only"]}
    assert changes["endpoint.changed"] == {"model": ["m", "n"]}


def test_no_entry_holds_a_piece_of_a_secret(api, alice):
    client = api(alice.token)
    key = client.post("/api/v1/keys", {"ref": "A_KEY", "value": VALUE}).json()["id"]
    client.patch(f"/api/v1/keys/{key}", {"value": VALUE + "2"})
    token = client.post("/api/v1/tokens", {"name": "ci", "permissions": ["runs:read"]}).json()
    secret = token["token"].split("_")[-1]
    text = str(list(AuditEntry.objects.values()))
    assert not [VALUE[at : at + 8] for at in range(len(VALUE) - 7) if VALUE[at : at + 8] in text]
    assert secret not in text


def test_the_log_is_read_by_admins_and_changed_by_nobody(api, alice, bob):
    assert api(bob.token).get("/api/v1/audit").status_code == 403
    with scope_active(Reach(bob.tenant.pk, bob.scope.pk)):
        assert list(AuditEntry.objects.all()) == list(AuditEntry._base_manager.all()) == []
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        AuditEntry.objects.update(actor="somebody else")
    with pytest.raises(IntegrityError, match="only appended"), transaction.atomic():
        AuditEntry.objects.all().delete()


def test_a_change_that_fails_is_not_noted(api, alice, log):
    client = api(alice.token)
    body = {"ref": "A_KEY", "value": VALUE}
    client.post("/api/v1/keys", body)
    assert client.post("/api/v1/keys", body).status_code == 409
    assert [row["action"] for row in log()].count("key.added") == 1


def test_the_admin_site_notes_its_user(alice, log):
    operator = User.objects.create_superuser("operator")
    browser = Client()
    browser.force_login(operator)
    page = f"/admin/tenants/scope/{alice.scope.pk}/change/"
    assert browser.post(page, {"key_policy": "shared_only"}).status_code == 302
    newest = log()[0]
    assert newest["action"] == "scope.changed"
    assert f"user {operator.pk} POST" in newest["actor"]
    assert browser.get("/admin/tenants/auditentry/").status_code == 200


def test_a_refusal_by_a_provider_is_noted_as_the_providers(alice, api, log):
    api(alice.token).post("/api/v1/keys", {"ref": "A_KEY", "value": VALUE})
    key = ProviderKey.objects.get()
    _note_refusal(ApiKey(str(key.pk), VALUE), "401")
    newest = log()[0]
    assert (newest["action"], newest["object_id"]) == ("key.refused", str(key.pk))
    assert newest["actor"].startswith("the provider refused")
