"""The admin site's pages: keys and tokens go in, lists stay up, services refuse."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tenants.authentication import caller_by_token
from tenants.encryption import Secret
from tenants.models import AccessToken, Endpoint, Membership, ProviderKey, Scope, Tenant
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key
from tenants.vault import open_value

KEYS = "/admin/tenants/providerkey/"
PAGES = ["tenant", "scope", "providerkey", "accesstoken", "endpoint"]


@pytest.fixture
def site(admin_user):
    client = Client()
    client.force_login(admin_user)
    return client


@pytest.fixture
def key_form(alice):
    return {
        "scope": str(alice.scope.pk), "ref": "A_KEY", "label": "", "priority": "100",
        "status": "active", "value": "sk-fake-7Hq2mZ0pTENANTA93xLw",
    }  # fmt: skip


def fill(person, number):
    add_key(scope=person.scope, ref=f"KEY_{number}", value=Secret("x" * 30))
    values = {"base_url": "https://a.example.test", "model": "m"}
    add_endpoint(tenant=person.tenant, scope=person.scope, values={"name": f"e{number}", **values})


@pytest.mark.parametrize("page", PAGES)
def test_every_list_and_form_opens(site, alice, page):
    fill(alice, 1)
    base = f"/admin/tenants/{page}/"
    model = {each._meta.model_name: each for each in admin.site._registry}[page]
    for url in (base, f"{base}?q=acme", f"{base}{model.objects.first().pk}/change/"):
        assert site.get(url).status_code == 200
    if page != "scope":
        assert site.get(f"{base}add/").status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "tenants/scope/?kind__exact=%00",
        "journal/call/?status__exact=%00",
        "autocomplete/?app_label=tenants&model_name=limit&field_name=tenant&term=%00",
    ],
)
def test_a_null_character_is_a_bad_request(site, query):
    assert site.get(f"/admin/{query}").status_code == 400


@pytest.mark.parametrize("page", PAGES)
def test_a_list_costs_the_same_queries_however_long_it_is(site, alice, charlie, page):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert site.get(f"/admin/tenants/{page}/").status_code == 200
        return len(captured)

    fill(alice, 0)
    queries()
    before = queries()
    for number in range(1, 4):
        fill(alice, number)
        fill(charlie, number)
        Tenant.objects.create(slug=f"more{number}", name="more")
    assert queries() == before


def test_a_key_is_stored_sealed_and_shown_by_its_last_four(site, key_form, admin_user):
    answer = site.post(f"{KEYS}add/", key_form, follow=True)
    key = ProviderKey.objects.select_related("data_key").get()
    assert open_value(key).reveal() == key_form["value"]
    assert key.created_by == admin_user
    assert "…3xLw" in answer.content.decode()


def test_an_empty_value_keeps_the_stored_one(site, key_form):
    site.post(f"{KEYS}add/", key_form)
    key = ProviderKey.objects.get()
    site.post(f"{KEYS}{key.pk}/change/", {**key_form, "value": "", "label": "новый ярлык"})
    key = ProviderKey.objects.select_related("data_key").get()
    assert (key.label, open_value(key).reveal()) == ("новый ярлык", key_form["value"])


def test_a_new_value_makes_a_refused_key_active_again(site, key_form):
    site.post(f"{KEYS}add/", key_form)
    ProviderKey.objects.update(status="refused", last_error="401")
    pk = ProviderKey.objects.get().pk
    form = {**key_form, "status": "refused", "value": "sk-fake-ROTATED0pTENANTA2222"}
    site.post(f"{KEYS}{pk}/change/", form)
    key = ProviderKey.objects.get()
    assert (key.status, key.last_error, key.hint) == ("active", "", "2222")


def test_a_new_key_needs_a_value_that_can_travel(site, key_form):
    for value in ("", "with space", "é"):
        assert site.post(f"{KEYS}add/", {**key_form, "value": value}).status_code == 200
    assert not ProviderKey.objects.exists()


def test_a_value_stored_twice_is_a_message_and_not_a_crash(site, key_form):
    site.post(f"{KEYS}add/", key_form)
    answer = site.post(f"{KEYS}add/", key_form, follow=True)
    assert "already stored" in answer.content.decode()
    assert ProviderKey.objects.count() == 1


@pytest.mark.parametrize("damage", ["row", "keyring"])
def test_a_key_that_no_longer_opens_asks_to_be_entered_again(site, key_form, settings, damage):
    site.post(f"{KEYS}add/", key_form)
    key = ProviderKey.objects.get()
    if damage == "row":
        ProviderKey.objects.update(sealed=b"rubbish")
    else:
        settings.BROKER_ENCRYPTION_KEYS = "other:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
    for url in (KEYS, f"{KEYS}{key.pk}/change/"):
        page = site.get(url)
        assert page.status_code == 200
        assert "needs re-entry" in page.content.decode()
    site.post(f"{KEYS}{key.pk}/change/", key_form)
    key = ProviderKey.objects.select_related("data_key").get()
    assert open_value(key).reveal() == key_form["value"]


def test_a_token_is_shown_in_the_answer_that_makes_it_and_never_again(site, alice):
    form = {"scope": str(alice.scope.pk), "name": "ci", "permissions": ["runs:read"]}
    page = site.post("/admin/tenants/accesstoken/add/", form)
    text = page.context["token"]
    assert text in page.content.decode()
    row = AccessToken.objects.get(name="ci")
    assert caller_by_token(text, now=row.created_at).scope == alice.scope
    assert text[21:64] not in str(page.headers) + str(site.session.items()) + str(site.cookies)
    assert text[21:64] not in site.get("/admin/tenants/accesstoken/").content.decode()


def test_tokens_are_revoked_in_the_list(site, api, alice):
    pks = list(AccessToken.objects.values_list("pk", flat=True))
    site.post("/admin/tenants/accesstoken/", {"action": "revoke", "_selected_action": pks})
    assert api(alice.token).get("/api/v1/scopes").status_code == 401


def inline(**row):
    base = {"memberships-TOTAL_FORMS": "1", "memberships-INITIAL_FORMS": "0"}
    return base | {f"memberships-0-{name}": value for name, value in row.items()}


def test_a_tenant_made_here_has_its_shared_scope_and_its_members_theirs(site, db):
    person = User.objects.create_user("dora", "dora@new.example")
    form = {
        "slug": "newco",
        "name": "New",
        "run_weight": "1",
        **inline(user=person.pk, role="owner"),
    }
    site.post("/admin/tenants/tenant/add/", form)
    tenant = Tenant.objects.get(slug="newco")
    assert {scope.kind for scope in Scope.objects.filter(tenant=tenant)} == {"shared", "personal"}
    assert Membership.objects.get(tenant=tenant).user == person


def test_neither_tenants_nor_scopes_are_deleted_here(site, alice):
    for url in (f"tenant/{alice.tenant.pk}", f"scope/{alice.scope.pk}"):
        assert site.post(f"/admin/tenants/{url}/delete/", {"post": "yes"}).status_code == 403
    assert Scope.objects.filter(pk=alice.scope.pk).exists()


def test_an_endpoint_of_another_tenants_scope_or_a_private_address_is_refused(site, alice, charlie):
    form = {
        "tenant": str(alice.tenant.pk), "scope": str(alice.scope.pk), "name": "e", "weight": "0.5",
        "base_url": "https://a.example.test/v1", "model": "m", "enabled": "on",
    }  # fmt: skip
    url = "/admin/tenants/endpoint/add/"
    for wrong in ({"scope": str(charlie.scope.pk)}, {"base_url": "http://169.254.169.254/"}):
        assert site.post(url, {**form, **wrong}, follow=True).status_code == 200
        assert not Endpoint.objects.exists()
    site.post(url, form)
    assert Endpoint.objects.get().scope == alice.scope


def test_only_staff_gets_in(client, alice):
    client.force_login(alice.user)
    assert client.get(KEYS).status_code == 302
