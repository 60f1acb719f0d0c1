"""What happens at the same moment in several processes; here, in several threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connections

from tenants.context import all_tenants
from tenants.encryption import Secret
from tenants.errors import Conflict
from tenants.models import DataKey, EncryptionKey, ProviderKey, Scope, Tenant
from tenants.services.keys import add_key
from tenants.services.people import create_tenant, ensure_shared_scope
from tenants.vault import is_readable

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 6


def at_once(do):
    """Run ``do(number)`` in many threads that start together; results and refusals."""
    together = Barrier(MANY)

    def one(number):
        together.wait()
        try:
            with all_tenants("a thread of the tests"):
                return do(number)
        except Conflict as refusal:
            return refusal
        finally:
            connections.close_all()

    with ThreadPoolExecutor(MANY) as threads:
        return list(threads.map(one, range(MANY)))


@pytest.fixture
def scope(transactional_db):
    return ensure_shared_scope(tenant=Tenant.objects.create(slug="acme", name="acme"))


def test_the_same_value_stored_at_once_is_stored_once(scope):
    results = at_once(lambda _: add_key(scope=scope, ref="A_KEY", value=Secret("x" * 30)))
    assert sum(isinstance(each, ProviderKey) for each in results) == 1
    assert sum(isinstance(each, Conflict) for each in results) == MANY - 1
    assert ProviderKey.objects.count() == 1


def test_the_first_keys_of_a_tenant_stored_at_once_share_one_data_key(scope):
    at_once(lambda number: add_key(scope=scope, ref=f"KEY_{number}", value=Secret("x" * 30)))
    assert DataKey.objects.count() == EncryptionKey.objects.count() == 1
    assert all(is_readable(key) for key in ProviderKey.objects.select_related("data_key"))
    assert ProviderKey.objects.count() == MANY


def test_a_tenant_made_at_once_is_made_once(transactional_db):
    owner = User.objects.create_user("alice")
    results = at_once(lambda _: create_tenant(slug="acme", owner=owner))
    assert sum(isinstance(each, Conflict) for each in results) == MANY - 1
    assert Tenant.objects.count() == 1
    assert Scope.objects.count() == 2
