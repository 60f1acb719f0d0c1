"""How long a tenant keeps its runs and its calls, read and set over the API by its admins."""

import pytest

from agents.models import RunRetention
from journal.models import RetentionPolicy
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db

PATH = "/api/v1/retention"
INSTALLATION = {
    "object": "retention",
    "runs": {"days": 60},
    "calls": {"metadata_days": None, "payload_days": 30, "keep_payloads": False},
}


@pytest.fixture(autouse=True)
def installation(settings):
    settings.RUN_DAYS = 60
    settings.JOURNAL_METADATA_DAYS, settings.JOURNAL_PAYLOAD_DAYS = None, 30


@pytest.fixture
def client(api, alice):
    return api(alice.token)


def test_without_a_rule_of_its_own_the_installations_holds(client):
    assert client.get(PATH).json() == INSTALLATION


def test_what_is_given_changes_and_the_rest_stays(client, alice):
    assert client.patch(PATH, {"runs": {"days": 7}}).json() == {
        **INSTALLATION,
        "runs": {"days": 7},
    }
    changed = client.patch(PATH, {"calls": {"metadata_days": 90}}).json()
    assert changed["calls"] == {**INSTALLATION["calls"], "metadata_days": 90}
    changed = client.patch(PATH, {"calls": {"keep_payloads": True}, "runs": {"days": None}}).json()
    assert (changed["runs"], changed["calls"]["metadata_days"]) == ({"days": None}, 90)
    assert client.get(PATH).json() == changed
    assert RunRetention.objects.get(tenant=alice.tenant).days is None
    assert RetentionPolicy.objects.get(tenant_id=alice.tenant.pk).keep_payloads is True


def test_null_goes_back_to_the_installations(client):
    client.patch(PATH, {"runs": {"days": 7}, "calls": {"payload_days": 7}})
    assert client.patch(PATH, {"runs": None, "calls": None}).json() == INSTALLATION
    assert not RunRetention.objects.exists()
    assert not RetentionPolicy.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"runs": {"days": 0}},
        {"runs": {"days": 40_000}},
        {"runs": 7},
        {"calls": {"payload_days": None}},
        {"calls": {"days": 7}},
        {"days": 7},
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(client, body):
    assert client.patch(PATH, {"calls": {"metadata_days": 5}, **body}).status_code == 400
    assert client.get(PATH).json() == INSTALLATION


def test_it_is_the_tenants_own_and_its_admins(client, api, bob, charlie):
    client.patch(PATH, {"runs": {"days": 7}})
    assert api(charlie.token).get(PATH).json() == INSTALLATION
    assert api(bob.token).get(PATH).status_code == 403
    assert api(bob.token).patch(PATH, {"runs": {"days": 1}}).status_code == 403


def test_a_change_is_in_the_audit_log(client, alice):
    client.patch(PATH, {"runs": {"days": 7}, "calls": {"metadata_days": 90}})
    noted = AuditEntry.objects.filter(tenant_id=alice.tenant.pk, action__startswith="retention.")
    assert {each.action: each.changes for each in noted} == {
        "retention.runs": {"days": [60, 7]},
        "retention.calls": {"metadata_days": [None, 90]},
    }


@pytest.mark.parametrize(
    ("page", "of", "form", "noted"),
    [
        ("agents/runretention", "tenant", {"days": 7}, {"days": [60, 7]}),
        (
            "journal/retentionpolicy",
            "tenant_id",
            {"metadata_days": 90, "payload_days": 30},
            {"metadata_days": [None, 90]},
        ),
    ],
)
def test_a_change_in_the_admin_is_in_the_audit_log_too(
    *, admin_client, alice, page, of, form, noted
):
    answer = admin_client.post(f"/admin/{page}/add/", {of: str(alice.tenant.pk), **form})
    assert answer.status_code == 302, answer.content
    chosen = {"action": "delete_selected", "post": "yes"}
    kept = (RunRetention if of == "tenant" else RetentionPolicy).objects.get()
    admin_client.post(f"/admin/{page}/", {**chosen, "_selected_action": [str(kept.pk)]})
    entries = AuditEntry.objects.filter(tenant_id=alice.tenant.pk, action__startswith="retention.")
    assert [each.changes for each in entries.order_by("id")] == [noted, {"policy": None}]


def test_a_policy_of_no_tenant_is_a_message_in_the_admin(admin_client, alice):
    form = {"tenant_id": str(alice.scope.pk), "payload_days": 30}
    answer = admin_client.post("/admin/journal/retentionpolicy/add/", form, follow=True)
    assert "There is no tenant with this id." in answer.content.decode()
    assert not RetentionPolicy.objects.exists()
