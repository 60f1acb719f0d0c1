"""Reads. Each takes the tenant, scope or caller that bounds what it may find."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet

from tenants.caller import Caller
from tenants.context import Lookup, Reach, current, scope_active
from tenants.errors import InvalidInput, NotFound
from tenants.models import (
    AccessToken,
    AuditEntry,
    Endpoint,
    Limit,
    Membership,
    ProviderKey,
    Scope,
    Tenant,
)
from tenants.roles import ADMIN

ScopeLike: TypeAlias = User | Scope | UUID | str
RowT = TypeVar("RowT", bound=Model)


def existing(rows: QuerySet[RowT], what: str, *, param: str | None = None) -> RowT:
    """The first of ``rows``. NotFound, which calls it ``what``, where there is none."""
    row = rows.first()
    if row is None:
        raise NotFound(f"No such {what}.", param=param)
    return row


def scope_of(subject: ScopeLike, tenant: Tenant | None = None) -> Scope:
    """The scope meant by a scope, its id, or a person (their personal one in ``tenant``).

    A person of several tenants needs ``tenant``. Raises NotFound or InvalidInput. Within a scope
    only what that may read is found; outside of all, the row is found by its name alone.
    """
    if current() is not None:
        return _scope_of(Scope.objects.all(), subject, tenant)
    name = f"user:{subject.pk}" if isinstance(subject, User) else f"scope:{_id_of(subject)}"
    with scope_active(Lookup(name)):
        return _scope_of(Scope.unscoped.all(), subject, tenant)


def reach_of(scope: Scope) -> Reach:
    """Where code runs that acts as ``scope``."""
    return Reach(scope.tenant_id, scope.pk)


def _scope_of(scopes: QuerySet[Scope], subject: ScopeLike, tenant: Tenant | None) -> Scope:
    scopes = scopes.select_related("tenant")
    if tenant is not None:
        scopes = scopes.filter(tenant=tenant)
    if isinstance(subject, User):
        return _personal_scope(scopes, subject)
    return existing(scopes.filter(pk=_id_of(subject)), "scope")


def _id_of(subject: Scope | UUID | str) -> UUID:
    return subject.pk if isinstance(subject, Scope) else _uuid(subject)


def _personal_scope(scopes: QuerySet[Scope], user: User) -> Scope:
    found = list(
        scopes.filter(user=user, kind=Scope.Kind.PERSONAL, tenant__memberships__user=user)[:2]
    )
    if not found:
        raise NotFound("This person has no scope here.")
    if len(found) > 1:
        raise InvalidInput(
            "This person belongs to several tenants: say which one.", code="tenant_required"
        )
    return found[0]


def _uuid(text: UUID | str) -> UUID:
    try:
        return text if isinstance(text, UUID) else UUID(text)
    except ValueError:
        raise NotFound("No such scope.") from None


def memberships_of(user: User, *, slug: str | None = None) -> list[Membership]:
    """The tenants that ``user`` belongs to (or the one named), with the role in each."""
    with scope_active(Lookup(f"user:{user.pk}")):
        found = Membership.unscoped.select_related("tenant").filter(user=user)
        return list(found if slug is None else found.filter(tenant__slug=slug))


def scopes_of(caller: Caller) -> QuerySet[Scope]:
    """The scopes a caller may know of: its own and the shared one; an admin's, all."""
    scopes = Scope.objects.filter(tenant=caller.tenant)
    if caller.may(ADMIN):
        return scopes
    return scopes.filter(Q(pk=caller.scope.pk) | Q(kind=Scope.Kind.SHARED))


def keys_of(caller: Caller) -> QuerySet[ProviderKey]:
    """The keys that a caller may see (masked): its own scope's and the shared ones."""
    return ProviderKey.objects.select_related("scope", "data_key").filter(
        Q(scope=caller.scope) | Q(scope__kind=Scope.Kind.SHARED), tenant=caller.tenant
    )


def tokens_of(caller: Caller) -> QuerySet[AccessToken]:
    """The tokens of the caller's scope; an admin's, all of the tenant."""
    tokens = AccessToken.objects.select_related("scope").filter(tenant=caller.tenant)
    return tokens if caller.may(ADMIN) else tokens.filter(scope=caller.scope)


def endpoints_for(scope: Scope) -> QuerySet[Endpoint]:
    """The endpoints of a scope: its own, and the tenant's for everybody."""
    return Endpoint.objects.select_related("scope").filter(
        Q(scope__isnull=True) | Q(scope=scope), tenant_id=scope.tenant_id
    )


def audit_of(tenant: Tenant) -> QuerySet[AuditEntry]:
    """What was changed in a tenant, for its admins."""
    return AuditEntry.objects.filter(tenant_id=tenant.pk)


def limits_of_tenant(tenant: Tenant) -> list[Limit]:
    """All limits of a tenant, its scopes and tokens."""
    return list(Limit.objects.filter(tenant=tenant).order_by("pk"))


@dataclass(frozen=True)
class KeyLevels:
    """The keys stored for one reference, by who pays, each in the order to try them."""

    own: list[ProviderKey] = field(default_factory=list)
    shared: list[ProviderKey] = field(default_factory=list)


def keys_for(scope: Scope, refs: Collection[str]) -> Mapping[str, KeyLevels]:
    """The keys that a scope's policy lets it pay with. Disabled ones count as not stored."""
    own, shared = Q(scope=scope), Q(scope__kind=Scope.Kind.SHARED)
    payers = {
        Scope.KeyPolicy.OWN_THEN_SHARED: own | shared,
        Scope.KeyPolicy.OWN_ONLY: own,
        Scope.KeyPolicy.SHARED_ONLY: shared,
    }[Scope.KeyPolicy(scope.key_policy)]
    keys = (
        ProviderKey.objects.select_related("data_key")
        .filter(payers, tenant_id=scope.tenant_id, ref__in=refs)
        .exclude(status=ProviderKey.Status.DISABLED)
        .order_by("priority", "pk")
    )
    levels: dict[str, KeyLevels] = {ref: KeyLevels() for ref in refs}
    for key in keys:
        level = levels[key.ref].own if key.scope_id == scope.pk else levels[key.ref].shared
        level.append(key)
    return levels
