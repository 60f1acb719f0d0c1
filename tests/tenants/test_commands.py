"""Setting up, rotating encryption keys, and the doctor."""

import io
import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from tenants.authentication import caller_by_token
from tenants.encryption import Secret
from tenants.errors import Conflict
from tenants.models import DataKey, EncryptionKey, Membership, ProviderKey, Scope, Tenant
from tenants.roles import ALL
from tenants.services.data_keys import rewrap_batch
from tenants.services.keys import add_key
from tenants.vault import open_value

OLD = "t1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
NEW = "new:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
VALUE = "sk-fake-7Hq2mZ0pTENANTA93xLw"


@pytest.fixture(autouse=True)
def one_key(settings):
    settings.BROKER_ENCRYPTION_KEYS = OLD


def run(*arguments):
    out = io.StringIO()
    call_command(*arguments, stdout=out, no_color=True)
    return out.getvalue()


def make(slug="acme", *arguments, owner="alice@acme.example"):
    return run("create_tenant", slug, "--owner", owner, *arguments)


def test_a_new_tenant_has_an_owner_scopes_and_a_token_that_may_do_everything(db):
    made = json.loads(make("acme", "--json"))
    tenant = Tenant.objects.get(slug="acme")
    assert made["tenant"] == {"id": str(tenant.pk), "slug": "acme"}
    assert Membership.objects.get(tenant=tenant).role == "owner"
    scopes = {scope.kind: str(scope.pk) for scope in Scope.objects.filter(tenant=tenant)}
    assert made["scopes"] == scopes
    caller = caller_by_token(made["token"], now=tenant.created_at)
    assert (str(caller.scope.pk), caller.permissions) == (scopes["personal"], ALL)
    assert caller.user.email == made["owner"]["email"] == "alice@acme.example"


def test_the_token_is_printed_for_people_too(db):
    assert "brk_" in make()


def test_an_existing_person_is_taken_and_keeps_the_password(db):
    alice = User.objects.create_user("alice", "Alice@Acme.example", "a password")
    make()
    alice.refresh_from_db()
    assert Membership.objects.get().user == alice
    assert alice.check_password("a password")
    assert not alice.is_staff


def test_a_new_person_has_no_password(db):
    make()
    assert not User.objects.get().has_usable_password()


def test_for_a_trial_the_owner_becomes_administrator_of_the_installation(db, client):
    make("acme", "--admin-password", "trial-password")
    owner = User.objects.get()
    assert owner.is_superuser
    assert owner.check_password("trial-password")
    client.force_login(owner)
    assert client.get("/admin/").status_code == 200


@pytest.mark.parametrize(
    ("slug", "owner", "says"),
    [
        ("acme", "bob@acme.example", "already"),
        ("Not A Slug", "bob@acme.example", "lower-case"),
        ("other", "no address", "e-mail"),
    ],
)
def test_what_cannot_be_made_is_refused_whole(db, slug, owner, says):
    make()
    with pytest.raises(CommandError, match=says):
        make(slug, owner=owner)
    assert (Tenant.objects.count(), User.objects.count()) == (1, 1)


def values():
    return [open_value(key).reveal() for key in ProviderKey.objects.select_related("data_key")]


@pytest.fixture
def stored(db):
    """Five tenants with a key each, and the token of the first."""
    made = [json.loads(make(f"t{n}", "--json", owner=f"p{n}@t.example")) for n in range(5)]
    for scope in Scope.objects.filter(kind="shared"):
        add_key(scope=scope, ref="A_KEY", value=Secret(VALUE))
    return made[0]["token"]


def test_after_a_rotation_the_old_encryption_key_is_not_needed(stored, settings):
    sealed = set(ProviderKey.objects.values_list("sealed", flat=True))
    settings.BROKER_ENCRYPTION_KEYS = f"{NEW},{OLD}"
    assert values() == [VALUE] * 5
    told = run("rotate_encryption_keys", "--batch-size", "2")
    assert [line.split()[0] for line in told.splitlines()[:3]] == ["2", "4", "5"]
    assert "t1 encrypts nothing now" in told
    settings.BROKER_ENCRYPTION_KEYS = NEW
    assert values() == [VALUE] * 5
    assert set(ProviderKey.objects.values_list("sealed", flat=True)) == sealed
    assert caller_by_token(stored, now=Tenant.objects.first().created_at)
    assert set(EncryptionKey.objects.values_list("kek_id", flat=True)) == {"new"}


class TestSecretsUnderNewDataKeys:
    """`rotate_encryption_keys --secrets`."""

    def test_all_move_and_all_still_open(self, stored):
        before = dict(ProviderKey.objects.values_list("pk", "data_key"))
        told = run("rotate_encryption_keys", "--secrets")
        assert "5 secrets of 5 of 5 tenants" in told
        assert values() == [VALUE] * 5
        for pk, data_key in ProviderKey.objects.values_list("pk", "data_key"):
            assert data_key != before[pk]

    def test_tokens_go_on_and_a_value_is_still_known_by_its_scope(self, stored):
        run("rotate_encryption_keys", "--secrets")
        assert caller_by_token(stored, now=Tenant.objects.first().created_at)
        scope = Scope.objects.filter(kind="shared").first()
        with pytest.raises(Conflict):
            add_key(scope=scope, ref="A_KEY", value=Secret(VALUE))

    def test_an_interrupted_move_goes_on_where_it_was(self, stored):
        first = run("rotate_encryption_keys", "--secrets").splitlines()[0]
        assert "Every secret" in run("rotate_encryption_keys", *first.split()[-3:])
        assert DataKey.objects.count() == 10

    def test_one_that_does_not_open_stays_and_is_named(self, stored):
        damaged = ProviderKey.objects.order_by("pk").first()
        ProviderKey.objects.filter(pk=damaged.pk).update(sealed=bytes(damaged.sealed)[:-1])
        with pytest.raises(CommandError, match=str(damaged.pk)):
            run("rotate_encryption_keys", "--secrets")
        assert DataKey.objects.filter(provider_keys=damaged.pk).get().pk == damaged.data_key_id


def test_an_interrupted_rotation_is_simply_started_again(stored, settings):
    settings.BROKER_ENCRYPTION_KEYS = f"{NEW},{OLD}"
    rewrap_batch(after=None, size=2)
    assert DataKey.objects.filter(kek_id="new").count() == 2
    assert values() == [VALUE] * 5
    run("rotate_encryption_keys")
    assert DataKey.objects.filter(kek_id="new").count() == 5


def test_a_rotation_with_nothing_to_do_changes_nothing(stored):
    before = list(DataKey.objects.order_by("pk").values())
    run("rotate_encryption_keys")
    assert list(DataKey.objects.order_by("pk").values()) == before


def test_a_rotation_goes_on_past_a_damaged_data_key_and_fails_at_the_end(stored, settings):
    broken = DataKey.objects.order_by("pk")[1]
    DataKey.objects.filter(pk=broken.pk).update(wrapped=bytes(broken.wrapped)[:-1])
    settings.BROKER_ENCRYPTION_KEYS = f"{NEW},{OLD}"
    with pytest.raises(CommandError, match=str(broken.pk)):
        run("rotate_encryption_keys", "--batch-size", "2")
    assert DataKey.objects.filter(kek_id="new").count() == 4


def test_a_lost_encryption_key_can_be_given_up(stored, settings):
    settings.BROKER_ENCRYPTION_KEYS = NEW
    with pytest.raises(CommandError, match="--abandon t1"):
        run("check", "--database", "default")
    run("rotate_encryption_keys", "--abandon", "t1")
    run("check", "--database", "default")
    run("rotate_encryption_keys")


@pytest.mark.parametrize(("kek_id", "says"), [("t1", "not lost"), ("unheard-of", "Nothing was")])
def test_only_a_key_that_is_lost_can_be_given_up(stored, kek_id, says):
    with pytest.raises(CommandError, match=says):
        run("rotate_encryption_keys", "--abandon", kek_id)


def test_the_doctor_finds_a_sound_installation_sound(stored):
    told = run("doctor")
    assert "FAIL" not in told
    assert [line.split()[1] for line in told.splitlines()] == [
        "redis:", "database:", "migrations:", "encryption", "rotation:", "provider", "tenants:",
    ]  # fmt: skip


def test_the_doctor_says_what_to_do(stored, settings, capsys):
    ProviderKey.objects.filter(pk=ProviderKey.objects.first().pk).update(sealed=b"rubbish")
    settings.BROKER_ENCRYPTION_KEYS = f"{NEW},{OLD}"
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    out = io.StringIO()
    with pytest.raises(CommandError, match="3 of these"):
        call_command("doctor", stdout=out, no_color=True)
    told = out.getvalue()
    assert "FAIL redis" in told
    assert "rotate_encryption_keys" in told
    assert "1 cannot be opened" in told
