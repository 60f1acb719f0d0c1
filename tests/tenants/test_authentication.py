"""Who is let in: tokens and sessions, and when they no longer are."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tenants.authentication import USE_NOTED_EVERY, caller_by_token
from tenants.errors import NotAuthenticated
from tenants.models import AccessToken, DataKey, Membership
from tenants.outage import process_memory
from tenants.roles import ALL, OF_ROLE
from tenants.services.people import add_member
from tenants.services.tokens import create_token, revoke_token
from tenants.tokens import new_token, parse_token

NOW = timezone.now()


def token_row(person):
    return AccessToken.objects.get(token_id=parse_token(person.token).token_id)


def assert_refused(answer):
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_acts_as_its_scope(alice):
    caller = caller_by_token(alice.token, now=NOW)
    assert (caller.tenant, caller.scope, caller.user) == (alice.tenant, alice.scope, alice.user)
    assert caller.permissions == ALL


def test_nobody_is_refused(api, db):
    assert_refused(api().get("/api/v1/scopes"))


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Bearer x", "bearer brk_x", "Bearer é" * 20]
)
def test_what_is_no_token_is_refused_without_a_query(api, db, header):
    client = api()
    client.credentials(HTTP_AUTHORIZATION=header)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert_refused(client.get("/api/v1/scopes"))
    assert not queries.captured_queries


def test_a_well_formed_token_that_was_never_made_is_refused(api, alice):
    assert_refused(api(new_token().reveal()).get("/api/v1/scopes"))


def test_the_right_id_with_another_secret_is_refused(api, alice):
    forged = new_token()
    AccessToken.objects.update(token_id=forged.token_id)
    assert_refused(api(forged.reveal()).get("/api/v1/scopes"))


def test_a_revoked_token_is_refused_with_the_next_request(api, alice):
    client = api(alice.token)
    assert client.get("/api/v1/scopes").status_code == 200
    revoke_token(token=token_row(alice), now=timezone.now())
    assert_refused(client.get("/api/v1/scopes"))


def test_a_token_ends_at_its_expiry(alice):
    end = NOW + timedelta(hours=1)
    AccessToken.objects.update(expires_at=end)
    assert caller_by_token(alice.token, now=end - timedelta(seconds=1))
    with pytest.raises(NotAuthenticated):
        caller_by_token(alice.token, now=end)


def test_who_writes_to_the_database_cannot_move_a_token_to_another_scope(api, alice, charlie):
    """Not within the tenant, and not with the other tenant's data key either."""
    shared = token_row(alice)
    AccessToken.objects.filter(pk=shared.pk).update(scope=alice.shared)
    assert_refused(api(alice.token).get("/api/v1/scopes"))
    AccessToken.objects.filter(pk=shared.pk).update(
        tenant=charlie.tenant,
        scope=charlie.scope,
        pepper=DataKey.objects.get(tenant=charlie.tenant),
    )
    assert_refused(api(alice.token).get("/api/v1/scopes"))


def test_a_personal_token_never_exceeds_what_its_person_may_do_today(api, alice, bob):
    Membership.objects.filter(user=bob.user).update(role=Membership.Role.VIEWER)
    assert caller_by_token(bob.token, now=NOW).permissions == OF_ROLE["viewer"]
    Membership.objects.filter(user=bob.user).delete()
    assert_refused(api(bob.token).get("/api/v1/scopes"))


def test_a_personal_token_of_a_deactivated_person_is_refused(api, bob):
    bob.user.is_active = False
    bob.user.save()
    assert_refused(api(bob.token).get("/api/v1/scopes"))


def test_a_token_of_the_shared_scope_outlives_the_person_who_made_it(alice, bob):
    new = create_token(scope=bob.shared, name="ci", permissions=["runs:read"], created_by=bob.user)
    Membership.objects.filter(user=bob.user).delete()
    caller = caller_by_token(new.text.reveal(), now=NOW)
    assert (caller.scope, caller.user) == (bob.shared, bob.user)


def test_a_token_that_cannot_be_checked_is_unavailable_and_not_wrong(api, alice, settings):
    settings.BROKER_ENCRYPTION_KEYS = "other:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
    answer = api(alice.token).get("/api/v1/scopes")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "secret_unavailable"


def test_the_look_up_is_two_queries_and_the_stamp_one_update_per_period(alice):
    with CaptureQueriesContext(connection) as queries:
        caller_by_token(alice.token, now=NOW)
    assert len(queries) == 3
    with CaptureQueriesContext(connection) as queries:
        caller_by_token(alice.token, now=NOW + USE_NOTED_EVERY / 2)
    assert len(queries) == 2
    caller_by_token(alice.token, now=NOW + USE_NOTED_EVERY * 2)
    assert token_row(alice).last_used_at == NOW + USE_NOTED_EVERY * 2


def test_only_a_keyed_digest_of_a_token_is_stored(alice):
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM tenants_accesstoken t")
        rows = str(cursor.fetchall())
    assert parse_token(alice.token).secret.reveal() not in rows


@pytest.fixture
def browser():
    def client(person, **kwargs):
        signed_in = Client(**kwargs)
        signed_in.force_login(person.user)
        return signed_in

    return client


def test_a_session_acts_in_the_persons_only_tenant(browser, bob):
    scopes = browser(bob).get("/api/v1/scopes").json()["data"]
    assert {scope["id"] for scope in scopes} == {str(bob.scope.pk), str(bob.shared.pk)}


def test_a_session_of_several_tenants_says_which(browser, bob, charlie):
    add_member(tenant=charlie.tenant, user=bob.user, role=Membership.Role.VIEWER)
    client = browser(bob)
    unsaid = client.get("/api/v1/scopes")
    assert (unsaid.status_code, unsaid.json()["error"]["code"]) == (400, "tenant_required")
    answer = client.get("/api/v1/scopes", headers={"X-Tenant": "globex"})
    assert str(charlie.shared.pk) in {scope["id"] for scope in answer.json()["data"]}


@pytest.mark.parametrize("slug", ["acme", "no-such", "", "\u0430cme"])
def test_a_session_cannot_name_a_tenant_it_does_not_belong_to(browser, alice, charlie, slug):
    answer = browser(charlie).get("/api/v1/scopes", headers={"X-Tenant": slug})
    assert answer.status_code == 403


def test_a_session_needs_the_csrf_token_to_write(browser, bob):
    client = browser(bob, enforce_csrf_checks=True)
    answer = client.post(
        "/api/v1/keys", {"ref": "A_KEY", "value": "x"}, content_type="application/json"
    )
    assert answer.status_code == 403


def test_an_administrator_of_the_installation_is_no_member_of_a_tenant(browser, alice, admin_user):
    client = Client()
    client.force_login(admin_user)
    assert client.get("/api/v1/keys", headers={"X-Tenant": "acme"}).status_code == 403


class TestWhileTheDatabaseIsAway:
    """A token in use is who it was, for a while."""

    @pytest.fixture(autouse=True)
    def memory(self):
        process_memory.cache_clear()
        yield
        process_memory.cache_clear()

    @pytest.fixture
    def away(self):
        def refuse(*_):
            raise OperationalError("away")

        return lambda: connection.execute_wrapper(refuse)

    def test_a_token_in_use_goes_on_and_another_does_not(self, alice, bob, away):
        before = caller_by_token(alice.token, now=NOW)
        with away():
            assert caller_by_token(alice.token, now=NOW) == before
            with pytest.raises(OperationalError):
                caller_by_token(bob.token, now=NOW)

    def test_a_token_that_expires_meanwhile_is_refused(self, alice, away):
        token = token_row(alice)
        token.expires_at = NOW + timedelta(hours=1)
        token.save()
        caller_by_token(alice.token, now=NOW)
        with away(), pytest.raises(NotAuthenticated):
            caller_by_token(alice.token, now=NOW + timedelta(hours=2))

    def test_a_token_that_was_refused_before_is_not_remembered(self, alice, away):
        caller_by_token(alice.token, now=NOW)
        revoke_token(token=token_row(alice), now=NOW)
        with pytest.raises(NotAuthenticated):
            caller_by_token(alice.token, now=NOW)
        with away(), pytest.raises(OperationalError):
            caller_by_token(alice.token, now=NOW)
