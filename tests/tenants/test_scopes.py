"""Which scope is meant, and which scopes and models a caller sees."""

from uuid import UUID

import pytest

from tenants.errors import Conflict, InvalidInput, NotFound
from tenants.models import Membership, Scope
from tenants.selectors import scope_of
from tenants.services.people import add_member

NO_ID = "01997a3c-0000-7000-8000-00000000000a"


def test_a_person_means_their_personal_scope_in_their_only_tenant(alice, bob):
    assert scope_of(alice.user) == alice.scope
    assert scope_of(bob.user) == bob.scope


def test_a_scope_and_its_id_mean_that_scope(alice):
    for subject in (alice.scope, alice.scope.pk, str(alice.scope.pk)):
        assert scope_of(subject) == alice.scope


def test_a_person_of_several_tenants_needs_one_named(bob, charlie):
    in_globex = add_member(tenant=charlie.tenant, user=bob.user, role=Membership.Role.VIEWER)
    with pytest.raises(InvalidInput, match="several tenants"):
        scope_of(bob.user)
    assert scope_of(bob.user, bob.tenant) == bob.scope
    assert scope_of(bob.user, charlie.tenant) == in_globex


@pytest.mark.parametrize("subject", ["rubbish", "", NO_ID, UUID(NO_ID)])
def test_what_is_no_scope_is_not_found(db, subject):
    with pytest.raises(NotFound):
        scope_of(subject)


def test_a_scope_is_found_in_its_own_tenant_only(alice, charlie):
    for subject in (alice.scope, str(alice.scope.pk), alice.user):
        with pytest.raises(NotFound):
            scope_of(subject, charlie.tenant)


def test_who_left_a_tenant_has_no_scope_there_and_gets_it_back_on_return(bob):
    Membership.objects.filter(user=bob.user).delete()
    with pytest.raises(NotFound):
        scope_of(bob.user)
    assert add_member(tenant=bob.tenant, user=bob.user, role=Membership.Role.MEMBER) == bob.scope


def test_nobody_is_a_member_twice(bob):
    with pytest.raises(Conflict):
        add_member(tenant=bob.tenant, user=bob.user, role=Membership.Role.OWNER)
    assert Membership.objects.get(user=bob.user).role == "member"


def test_a_member_sees_their_own_scope_and_the_shared_one_an_admin_all(api, alice, bob, charlie):
    def seen(person):
        return {row["id"] for row in api(person.token).get("/api/v1/scopes").json()["data"]}

    shared = str(alice.shared.pk)
    assert seen(bob) == {str(bob.scope.pk), shared}
    assert seen(alice) == {str(alice.scope.pk), str(bob.scope.pk), shared}
    assert len(seen(charlie)) == Scope.objects.filter(tenant=charlie.tenant).count() == 2
