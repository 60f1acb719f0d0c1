"""What every keyring promises, whether its keys stand in the environment or in a service."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from tenants import vault
from tenants.encryption import CachedKeyring, EnvKeyring, KeyUnavailable, Secret, Tampered
from tenants.errors import SecretUnavailable
from tenants.models import ProviderKey
from tenants.services.keys import add_key
from tests.support.key_service import KeyService

KEYS = {
    "new": "new:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=",
    "old": "old:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
}
DATA_KEY = Secret(b"d" * 32)


def in_the_environment(*ids):
    return EnvKeyring(",".join(KEYS[kek_id] for kek_id in ids))


def cached(*ids):
    return CachedKeyring(in_the_environment(*ids))


@pytest.fixture(params=[in_the_environment, KeyService, cached])
def make(request):
    return request.param


@pytest.fixture
def keyring(make):
    return make("new", "old")


def test_the_first_key_is_active_and_all_are_known(keyring):
    assert (keyring.active, keyring.ids) == ("new", {"new", "old"})


def test_what_is_wrapped_is_unwrapped_in_its_context_and_in_no_other(keyring):
    wrapped = keyring.wrap(DATA_KEY, b"here")
    assert keyring.unwrap(wrapped, b"here").reveal() == DATA_KEY.reveal()
    with pytest.raises(Tampered):
        keyring.unwrap(wrapped, b"there")


def test_what_was_changed_is_not_unwrapped(keyring):
    wrapped = keyring.wrap(DATA_KEY, b"here")
    for changed in (wrapped[:-1], wrapped[:-1] + bytes([wrapped[-1] ^ 1]), b""):
        with pytest.raises((Tampered, KeyUnavailable)):
            keyring.unwrap(changed, b"here")


def test_a_key_that_is_not_there_is_named(make):
    wrapped = make("old").wrap(DATA_KEY, b"here")
    with pytest.raises(KeyUnavailable) as refused:
        make("new").unwrap(wrapped, b"here")
    assert refused.value.kek_id == "old"


def test_a_check_value_tells_keys_apart_and_is_always_the_same(keyring, make):
    assert keyring.check_value("new") == make("new").check_value("new")
    assert keyring.check_value("new") != keyring.check_value("old")
    with pytest.raises(KeyUnavailable):
        keyring.check_value("unheard-of")


def test_no_keyring_shows_what_it_unwrapped(keyring):
    keyring.unwrap(keyring.wrap(DATA_KEY, b"here"), b"here")
    assert "ddd" not in repr(vars(keyring).get("_kept", "")) + repr(keyring)


class TestCaching:
    """Of a service that is asked over the network."""

    @pytest.fixture
    def now(self):
        return [1000.0]

    @pytest.fixture
    def service(self):
        return KeyService("new")

    @pytest.fixture
    def spared(self, service, now):
        return CachedKeyring(service, seconds=300, size=3, clock=lambda: now[0])

    def test_asks_once_in_five_minutes(self, service, spared, now):
        wrapped = service.wrap(DATA_KEY, b"here")
        for moment, asked in ((1000.0, 2), (1299.9, 2), (1300.0, 3)):
            now[0] = moment
            assert spared.unwrap(wrapped, b"here").reveal() == DATA_KEY.reveal()
            assert service.asked == asked

    def test_carries_over_an_outage_and_keeps_no_failure(self, service, spared, now):
        wrapped = service.wrap(DATA_KEY, b"here")
        spared.unwrap(wrapped, b"here")
        service.away = True
        assert spared.unwrap(wrapped, b"here").reveal() == DATA_KEY.reveal()
        now[0] += 300
        with pytest.raises(KeyUnavailable, match="does not answer"):
            spared.unwrap(wrapped, b"here")
        service.away = False
        assert spared.unwrap(wrapped, b"here").reveal() == DATA_KEY.reveal()

    def test_keeps_a_bounded_number(self, service, spared):
        tickets = [service.wrap(DATA_KEY, b"here") for _ in range(5)]
        for ticket in tickets:
            spared.unwrap(ticket, b"here")
        asked = service.asked
        spared.unwrap(tickets[-1], b"here")
        assert service.asked == asked
        spared.unwrap(tickets[0], b"here")
        assert service.asked == asked + 1


class TestAPluggedOne:
    """BROKER_KEYRING instead of BROKER_ENCRYPTION_KEYS."""

    def test_keeps_the_tenants_secrets_and_fails_closed_without_its_service(self, alice, settings):
        settings.BROKER_KEYRING = "tests.support.key_service.the_service"
        add_key(scope=alice.shared, ref="A_KEY", value=Secret("x" * 30))
        key = ProviderKey.objects.select_related("data_key").get()
        assert key.data_key.kek_id == "kms-1"
        assert vault.open_value(key).reveal() == "x" * 30
        settings.BROKER_KEYRING = "tests.support.key_service.without_its_key"
        with pytest.raises(SecretUnavailable):
            vault.open_value(key)

    @pytest.mark.parametrize(
        ("path", "says"),
        [
            ("tests.support.no_such_module.service", "no_such_module"),
            ("tests.support.key_service.no_service", "gives no tenants.encryption.Keyring"),
        ],
    )
    def test_that_is_no_keyring_is_an_error_in_words(self, settings, path, says):
        settings.BROKER_KEYRING = path
        with pytest.raises(ImproperlyConfigured, match=says):
            vault.keyring()
