"""Whose key pays: own, shared, the installation's; and that no failure passes the bill on."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from llmbroker.errors import KeyUnavailableError
from llmbroker.models import ApiKey, KeySource, LLMConfig
from llmbroker.ports import KeyRing, KeyWatch, ScopedRegistry
from tenants.adapters import DjangoRegistry, DjangoSecrets
from tenants.encryption import Secret
from tenants.errors import SecretUnavailable
from tenants.models import Endpoint, ProviderKey, Scope
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key, delete_key, note_use, update_key

pytestmark = pytest.mark.django_db(transaction=True)

REF = "OPENAI_API_KEY"
INSTALLATION = "sk-installation-key-0000"
secrets = DjangoSecrets(environment={REF: f"{INSTALLATION}\n", "EMPTY_KEY": ""})


def keys(person, ref=REF):
    return asyncio.run(secrets.keys(ref, scope=str(person.scope.pk)))


def payers(person, ref=REF):
    return [(key.value, key.source) for key in keys(person, ref)]


def store(scope, value, **fields):
    return add_key(scope=scope, ref=REF, value=Secret(value), **fields)


@pytest.fixture
def alice(transactional_db, alice):
    return alice


@pytest.fixture
def may_use_installation(alice):
    alice.tenant.uses_installation_keys = True
    alice.tenant.save()


def test_the_adapters_are_what_the_engine_asks_for():
    assert isinstance(secrets, KeyRing)
    assert isinstance(secrets, KeyWatch)
    assert isinstance(DjangoRegistry([]), ScopedRegistry)


def test_ones_own_key_pays_before_the_shared_and_the_installations(alice, may_use_installation):
    assert payers(alice) == [(INSTALLATION, KeySource.INSTALLATION)]
    store(alice.shared, "shared")
    assert payers(alice) == [("shared", KeySource.SHARED)]
    store(alice.scope, "own")
    assert payers(alice) == [("own", KeySource.OWN)]


def test_several_keys_of_one_level_are_tried_by_priority(alice):
    store(alice.scope, "second", priority=2)
    store(alice.scope, "third", priority=3)
    store(alice.scope, "first", priority=1)
    assert [value for value, _ in payers(alice)] == ["first", "second", "third"]


def test_the_installation_pays_only_for_tenants_that_may_use_it(
    alice, charlie, may_use_installation
):
    assert payers(alice)
    assert payers(charlie) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("own_only", ["own"]), ("shared_only", ["shared"]), ("own_then_shared", ["own"])],
)
def test_a_scope_says_whose_keys_it_uses(alice, may_use_installation, policy, expected):
    store(alice.scope, "own")
    store(alice.shared, "shared")
    Scope.objects.filter(pk=alice.scope.pk).update(key_policy=policy)
    assert [value for value, _ in payers(alice)] == expected


@pytest.mark.parametrize("policy", ["own_only", "shared_only"])
def test_only_means_only(alice, may_use_installation, policy):
    Scope.objects.filter(pk=alice.scope.pk).update(key_policy=policy)
    assert payers(alice) == []


def test_the_shared_scopes_own_key_is_its_own(alice):
    store(alice.shared, "shared")
    found = asyncio.run(secrets.keys(REF, scope=str(alice.shared.pk)))
    assert [(key.value, key.source) for key in found] == [("shared", KeySource.OWN)]


def test_nobody_pays_with_anothers_key(alice, bob, charlie):
    store(alice.scope, "alice's")
    store(alice.shared, "acme's")
    assert payers(bob) == [("acme's", KeySource.SHARED)]
    assert payers(charlie) == []


def test_a_key_that_cannot_be_opened_does_not_pass_the_bill_on(alice, may_use_installation):
    broken = store(alice.scope, "own")
    store(alice.shared, "shared")
    ProviderKey.objects.filter(pk=broken.pk).update(sealed=bytes(broken.sealed)[:-1] + b"x")
    with pytest.raises(SecretUnavailable, match="enter its value again"):
        keys(alice)


def test_many_references_are_looked_up_with_one_query(alice, may_use_installation):
    store(alice.scope, "own")
    broken = add_key(scope=alice.shared, ref="B_KEY", value=Secret("broken"))
    ProviderKey.objects.filter(pk=broken.pk).update(sealed=b"rubbish")
    refs = [REF, "B_KEY", "C_KEY", f"own:{REF}", "own:B_KEY", "tenant:B_KEY"]

    def look_up():
        with CaptureQueriesContext(connection) as queries:
            found = secrets._keyring_of(str(alice.scope.pk), refs)
        assert len(queries) == 2
        return found

    found = look_up()
    assert (
        [key.value for key in found[REF]] == [key.value for key in found[f"own:{REF}"]] == ["own"]
    )
    assert isinstance(found["B_KEY"], KeyUnavailableError)
    assert isinstance(found["tenant:B_KEY"], KeyUnavailableError)
    assert found["C_KEY"] == found["own:B_KEY"] == []


def test_another_key_of_the_same_level_may_stand_in_for_a_broken_one(alice):
    broken = store(alice.scope, "broken", priority=1)
    store(alice.scope, "sound", priority=2)
    ProviderKey.objects.filter(pk=broken.pk).update(sealed=b"rubbish")
    assert payers(alice) == [("sound", KeySource.OWN)]


def test_a_missing_encryption_key_stops_calls_and_nothing_else(
    alice, may_use_installation, settings
):
    store(alice.scope, "own")
    settings.BROKER_ENCRYPTION_KEYS = "other:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
    with pytest.raises(SecretUnavailable):
        keys(alice)


def test_a_refused_key_is_out_of_use_and_does_not_pass_the_bill_on(alice, may_use_installation):
    store(alice.scope, "own")
    store(alice.shared, "shared")
    asyncio.run(secrets.key_refused(keys(alice)[0], detail="invalid api key"))
    assert payers(alice) == []
    key = ProviderKey.objects.get(scope=alice.scope)
    assert (key.status, key.last_error) == ("refused", "invalid api key")
    update_key(key=key, value=Secret("new"))
    assert payers(alice) == [("new", KeySource.OWN)]


def test_a_refusal_that_comes_after_the_key_was_replaced_is_ignored(alice):
    key = store(alice.scope, "old")
    used = keys(alice)[0]
    update_key(key=key, value=Secret("new"))
    asyncio.run(secrets.key_refused(used, detail="invalid api key"))
    assert payers(alice) == [("new", KeySource.OWN)]


def test_the_refusal_of_an_installation_key_is_nobodys_row(alice, may_use_installation):
    asyncio.run(secrets.key_refused(keys(alice)[0], detail="invalid api key"))
    assert payers(alice) == [(INSTALLATION, KeySource.INSTALLATION)]


def test_a_disabled_key_counts_as_not_stored(alice):
    key = store(alice.scope, "own")
    store(alice.shared, "shared")
    update_key(key=key, status="disabled")
    assert payers(alice) == [("shared", KeySource.SHARED)]


def test_every_change_counts_with_the_next_look_up(alice):
    key = store(alice.scope, "first")
    assert payers(alice) == [("first", KeySource.OWN)]
    update_key(key=key, value=Secret("second"))
    assert payers(alice) == [("second", KeySource.OWN)]
    delete_key(key=key)
    assert payers(alice) == []


def test_looked_up_at_once_every_scope_gets_its_own(alice, bob, charlie):
    people = [alice, bob, charlie]
    for person in people:
        store(person.scope, f"key of {person.user.username}")

    async def crowd():
        asked = people * 20
        return asked, await asyncio.gather(
            *(secrets.keys(REF, scope=str(each.scope.pk)) for each in asked)
        )

    for person, found in zip(*asyncio.run(crowd()), strict=True):
        assert [key.value for key in found] == [f"key of {person.user.username}"]


@pytest.mark.parametrize("scope", ["not-a-scope", "01890000-0000-7000-8000-000000000000", ""])
def test_an_unknown_scope_has_no_key(db, scope):
    assert asyncio.run(secrets.keys(REF, scope=scope)) == []


def test_without_a_scope_the_installation_pays():
    assert asyncio.run(secrets.resolve(REF)) == INSTALLATION
    assert asyncio.run(secrets.keys("EMPTY_KEY", scope=None)) == []
    with pytest.raises(KeyError):
        asyncio.run(secrets.resolve("NO_SUCH_KEY"))


def test_a_scoped_reference_resolves_to_what_the_scope_pays_with(alice):
    store(alice.scope, "own")
    assert asyncio.run(secrets.resolve(f"{alice.scope.pk}/{REF}")) == "own"
    with pytest.raises(KeyError):
        asyncio.run(secrets.resolve(f"{alice.scope.pk}/OTHER_KEY"))


COMMON = [
    LLMConfig(name="common", base_url="https://c.test/v1", model="c", api_key_ref=REF),
    LLMConfig(name="big", base_url="https://b.test/v1", model="b", api_key_ref=REF, alias="opus"),
]
URL = {"base_url": "https://api.example.test/v1", "model": "m", "api_key_ref": REF}


def models(scope):
    return {each.name: each for each in asyncio.run(DjangoRegistry(COMMON).load_for(str(scope.pk)))}


def test_a_tenants_endpoints_join_the_common_pool_under_names_of_the_tenant(alice, bob, charlie):
    add_endpoint(tenant=alice.tenant, scope=None, values={"name": "ours", **URL})
    add_endpoint(tenant=alice.tenant, scope=alice.scope, values={"name": "mine", **URL})
    add_endpoint(tenant=alice.tenant, scope=None, values={"name": "off", "enabled": False, **URL})
    add_endpoint(tenant=charlie.tenant, scope=None, values={"name": "ours", **URL})
    assert set(models(alice.scope)) == {"common", "big", "acme/ours", "acme/mine"}
    assert set(models(bob.scope)) == {"common", "big", "acme/ours"}
    assert set(models(charlie.scope)) == {"common", "big", "globex/ours"}
    assert models(alice.scope)["acme/ours"].alias == "ours"
    assert models(alice.scope)["acme/ours"].guarded
    assert not models(alice.scope)["common"].guarded
    assert [each.name for each in asyncio.run(DjangoRegistry(COMMON).load())] == ["common", "big"]


def test_an_endpoint_whose_row_makes_no_sense_is_left_out_and_said_once(alice, caplog):
    for name in ("good", "bad"):
        add_endpoint(tenant=alice.tenant, scope=None, values={"name": name, **URL})
    bad = Endpoint.objects.filter(name="bad")
    registry = DjangoRegistry([])

    def found():
        return [each.alias for each in asyncio.run(registry.load_for(str(alice.scope.pk)))]

    bad.update(base_url="https://[::1/v1")
    assert [found(), found()] == [["good"], ["good"]]
    bad.update(base_url="https://api.example.test/v1")
    assert found() == ["good", "bad"]
    bad.update(base_url="https://[::1/v1")
    assert found() == ["good"]
    told = [each.getMessage() for each in caplog.records if "is left out" in each.getMessage()]
    assert len(told) == 2


def test_an_endpoint_hides_the_common_model_of_its_name(alice, charlie):
    add_endpoint(tenant=alice.tenant, scope=None, values={"name": "opus", **URL})
    assert set(models(alice.scope)) == {"common", "acme/opus"}
    assert set(models(charlie.scope)) == {"common", "big"}


def test_only_keys_of_who_defined_an_endpoint_are_sent_to_it(alice, bob, may_use_installation):
    """Else a member could point an endpoint at a server of their own and read others' keys."""
    add_endpoint(tenant=bob.tenant, scope=bob.scope, values={"name": "bobs", **URL})
    add_endpoint(tenant=alice.tenant, scope=None, values={"name": "ours", **URL})
    bobs, ours = (models(bob.scope)[name].api_key_ref for name in ("acme/bobs", "acme/ours"))
    assert payers(bob, ours) == payers(bob, bobs) == []
    assert asyncio.run(secrets.keys(ours, scope=None)) == []
    store(bob.shared, "shared")
    assert payers(bob, bobs) == []
    assert payers(bob, ours) == [("shared", KeySource.SHARED)]
    store(bob.scope, "own")
    assert payers(bob, bobs) == payers(bob, ours) == [("own", KeySource.OWN)]


def test_an_endpoint_may_need_no_key(alice):
    add_endpoint(
        tenant=alice.tenant, scope=None, values={**URL, "name": "local", "api_key_ref": ""}
    )
    assert models(alice.scope)["acme/local"].api_key_ref == ""


def test_a_refusal_of_a_key_that_was_deleted_changes_nothing(alice):
    key = store(alice.scope, "own")
    used = keys(alice)[0]
    delete_key(key=key)
    asyncio.run(secrets.key_refused(used, detail="x"))
    asyncio.run(secrets.key_refused(ApiKey(str(alice.scope.pk), "x", KeySource.OWN), detail="x"))
    assert Endpoint.objects.count() == ProviderKey.objects.count() == 0


def test_a_keys_use_is_stamped_at_most_once_per_period(alice):
    key = store(alice.scope, "own")
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for minute, stamped in ((0, 0), (4, 0), (6, 6)):
        now = noon + timedelta(minutes=minute)
        note_use(key_ids=[key.pk], now=now, unless_since=now - timedelta(minutes=5))
        key.refresh_from_db()
        assert key.last_used_at == noon + timedelta(minutes=stamped)
