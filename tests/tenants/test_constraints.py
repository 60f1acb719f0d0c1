"""The database itself refuses what would break the walls, whatever code comes by."""

import uuid

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError, RestrictedError

from tenants.encryption import Secret
from tenants.models import (
    AccessToken,
    DataKey,
    EncryptionKey,
    Endpoint,
    Membership,
    ProviderKey,
    Scope,
    Tenant,
)
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key


@pytest.fixture
def rows(alice):
    """One row of each kind that names a scope or a data key."""
    return {
        ProviderKey: add_key(scope=alice.scope, ref="A_KEY", value=Secret("a" * 30)),
        AccessToken: AccessToken.objects.get(tenant=alice.tenant),
        Endpoint: add_endpoint(
            tenant=alice.tenant,
            scope=alice.scope,
            values={"name": "e", "base_url": "https://a.example.test", "model": "m"},
        ),
    }


def written(write):
    """Deferred constraints speak when the transaction ends: here they are asked at once."""
    with transaction.atomic(), connection.cursor() as cursor:
        write()
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def assert_refused(constraint, write):
    with pytest.raises(IntegrityError, match=constraint):
        written(write)


@pytest.mark.parametrize(
    ("model", "column"),
    [
        (ProviderKey, "scope"),
        (ProviderKey, "data_key"),
        (AccessToken, "scope"),
        (AccessToken, "pepper"),
        (Endpoint, "scope"),
    ],
)
def test_a_row_cannot_name_a_scope_or_data_key_of_another_tenant(rows, charlie, model, column):
    foreign = charlie.scope if column == "scope" else DataKey.objects.get(tenant=charlie.tenant)
    stored = model.objects.filter(pk=rows[model].pk)
    assert_refused(f"{column}_id_same_tenant", lambda: stored.update(**{column: foreign}))
    assert_refused("same_tenant", lambda: stored.update(tenant=charlie.tenant))


@pytest.mark.parametrize(
    ("constraint", "model", "changes"),
    [
        ("scope_personal_has_user", Scope, {"kind": "personal", "user": None}),
        ("scope_key_policy_known", Scope, {"key_policy": "anything"}),
        ("membership_role_known", Membership, {"role": "king"}),
        ("tenant_slug_form", Tenant, {"slug": "Not A Slug"}),
        ("providerkey_status_known", ProviderKey, {"status": "lost"}),
        ("providerkey_ref_form", ProviderKey, {"ref": "lower"}),
        ("accesstoken_has_permissions", AccessToken, {"permissions": []}),
        ("endpoint_weight_range", Endpoint, {"weight": 1.5}),
        ("endpoint_weight_range", Endpoint, {"weight": float("nan")}),
        ("endpoint_parallel_positive", Endpoint, {"parallel": 0}),
        ("endpoint_context_window_positive", Endpoint, {"context_window": 0}),
        ("endpoint_key_ref_form", Endpoint, {"api_key_ref": "own:KEY"}),
    ],
)
def test_a_value_outside_its_range_is_refused(rows, constraint, model, changes):
    assert_refused(constraint, lambda: model.objects.update(**changes))


def test_a_tenant_has_one_shared_scope_and_a_member_one_personal(alice):
    assert_refused(
        "scope_one_shared_per_tenant",
        lambda: Scope.objects.create(tenant=alice.tenant, kind="shared", name="another"),
    )
    assert_refused(
        "scope_one_personal_per_member",
        lambda: Scope.objects.create(
            tenant=alice.tenant, kind="personal", user=alice.user, name="x"
        ),
    )
    assert_refused(
        "scope_personal_has_user",
        lambda: Scope.objects.create(tenant=alice.tenant, kind="shared", user=alice.user, name="x"),
    )


def test_a_person_with_a_personal_scope_cannot_be_deleted(alice):
    with pytest.raises(ProtectedError):
        alice.user.delete()


def test_a_data_key_in_use_cannot_be_deleted(rows):
    with pytest.raises(RestrictedError):
        DataKey.objects.get().delete()


def test_a_deleted_tenant_takes_all_that_is_its_own_and_nothing_else(rows, alice, charlie):
    alice.tenant.delete()
    for model in (Membership, Scope, DataKey, AccessToken):
        assert {row.tenant_id for row in model.objects.all()} == {charlie.tenant.pk}
    assert not ProviderKey.objects.exists()
    assert not Endpoint.objects.exists()
    assert User.objects.count() == 2
    assert EncryptionKey.objects.count() == 1


def test_ids_are_in_order_of_time(db):
    ids = [Tenant.objects.create(slug=f"t{number}", name="t").pk for number in range(20)]
    assert all(isinstance(each, uuid.UUID) and each.version == 7 for each in ids)
    assert ids == sorted(ids)
