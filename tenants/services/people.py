"""Tenants and the people in them."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from tenants.errors import Conflict, InvalidInput
from tenants.models import Membership, Scope, Tenant
from tenants.models.people import SLUG
from tenants.roles import ALL
from tenants.services.audit import difference, note, values_of
from tenants.services.integrity import conflict_if
from tenants.services.tokens import NewToken, create_token


@dataclass(frozen=True)
class NewTenant:
    """What a new tenant starts with."""

    tenant: Tenant
    owner: User
    personal: Scope
    shared: Scope
    token: NewToken


@transaction.atomic
def create_tenant(*, slug: str, owner: User, name: str = "") -> NewTenant:
    """A tenant with its owner, their scopes, and one token that may do everything."""
    _check_slug(slug)
    with conflict_if("tenants_tenant_slug_key", f"There is a tenant {slug} already.", param="slug"):
        tenant = Tenant.objects.create(slug=slug, name=name or slug)
    note("tenant.created", tenant, tenant_id=tenant.pk)
    shared = ensure_shared_scope(tenant=tenant)
    personal = add_member(tenant=tenant, user=owner, role=Membership.Role.OWNER)
    token = create_token(scope=personal, name="first token", permissions=ALL, created_by=owner)
    return NewTenant(tenant, owner, personal, shared, token)


def ensure_shared_scope(*, tenant: Tenant) -> Scope:
    """The scope whose keys all members may share."""
    scope, _ = Scope.objects.get_or_create(
        tenant=tenant, kind=Scope.Kind.SHARED, defaults={"name": tenant.name}
    )
    return scope


@transaction.atomic
def add_member(*, tenant: Tenant, user: User, role: str) -> Scope:
    """Make ``user`` a member; returns their personal scope, the former one if they come back."""
    with conflict_if(
        "membership_once_per_tenant", f"{user.get_username()} is a member of {tenant} already."
    ):
        member = Membership.objects.create(tenant=tenant, user=user, role=role)
        note("member.added", member, tenant_id=tenant.pk, changes={"role": role})
    return ensure_personal_scope(tenant=tenant, user=user)


@transaction.atomic
def set_key_policy(*, scope: Scope, policy: str) -> Scope:
    """Say whose keys a scope may pay with."""
    before = values_of(scope, ["key_policy"])
    scope.key_policy = policy
    scope.save(update_fields=["key_policy"])
    note("scope.changed", scope, tenant_id=scope.tenant_id, changes=difference(before, scope))
    return scope


def note_member(action: str, membership: Membership) -> None:
    """Tell the audit log of a member whom the admin site changed."""
    changes = {"user": membership.user_id, "role": membership.role}
    note(action, membership, tenant_id=membership.tenant_id, changes=changes)


def ensure_personal_scope(*, tenant: Tenant, user: User) -> Scope:
    """The scope of a member's own keys and calls."""
    scope, _ = Scope.objects.get_or_create(
        tenant=tenant,
        kind=Scope.Kind.PERSONAL,
        user=user,
        defaults={"name": user.get_username()},
    )
    return scope


def person_by_email(*, email: str) -> User:
    """The user with that address, made if there is none. A new one has no password.

    Raises Conflict where several have it.
    """
    found = list(User.objects.filter(email__iexact=email)[:2])
    if len(found) > 1:
        raise Conflict(f"Several users have the address {email}.", param="email")
    if found:
        return found[0]
    with conflict_if("auth_user_username_key", f"There is a user {email} already.", param="email"):
        return User.objects.create_user(username=email, email=email)


def grant_admin_site(*, user: User, password: str) -> None:
    """Let a person into the installation's admin site, with everything in it."""
    user.is_staff = user.is_superuser = True
    user.set_password(password)
    user.save()


def _check_slug(slug: str) -> None:
    try:
        SLUG(slug)
    except ValidationError:
        raise InvalidInput(str(SLUG.message), param="slug") from None
