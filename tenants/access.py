"""From an id in a request to a row that this caller may see, or change.

What the caller cannot see is NotFound, whether it exists or not; what it sees and may not
change is PermissionRefused.
"""

from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from tenants.caller import Caller
from tenants.errors import InvalidInput, NotFound, PermissionRefused
from tenants.models import AccessToken, Endpoint, Limit, ProviderKey, Scope
from tenants.roles import ADMIN
from tenants.selectors import endpoints_for, keys_of, tokens_of

M = TypeVar("M", bound=Model)

SHARED = "shared"
ADMINS_ONLY = "Only an admin of the tenant changes what all its members share."


def visible_key(caller: Caller, key_id: UUID) -> ProviderKey:
    """A key that the caller may see, masked."""
    return _found(keys_of(caller), key_id, "key")


def writable_key(caller: Caller, key_id: UUID) -> ProviderKey:
    """A key that the caller may change."""
    key = visible_key(caller, key_id)
    _require_own(caller, key.scope_id)
    return key


def visible_endpoint(caller: Caller, endpoint_id: UUID) -> Endpoint:
    """An endpoint that the caller's scope can call."""
    return _found(endpoints_for(caller.scope), endpoint_id, "endpoint")


def writable_endpoint(caller: Caller, endpoint_id: UUID) -> Endpoint:
    """An endpoint that the caller may change."""
    endpoint = visible_endpoint(caller, endpoint_id)
    _require_own(caller, endpoint.scope_id)
    return endpoint


def revocable_token(caller: Caller, token_id: UUID) -> AccessToken:
    """A token that the caller may revoke."""
    return _found(tokens_of(caller), token_id, "token")


def changeable_scope(caller: Caller, scope_id: UUID) -> Scope:
    """A scope of the caller's tenant; the route asks for an admin."""
    return _found(Scope.objects.filter(tenant=caller.tenant), scope_id, "scope")


def limited_scope(caller: Caller, scope_id: UUID | None) -> Scope | None:
    """The scope of the caller's tenant that a limit is set for."""
    return None if scope_id is None else changeable_scope(caller, scope_id)


def limited_token(caller: Caller, token_id: UUID | None) -> AccessToken | None:
    """The token of the caller's tenant that a limit is set for."""
    return None if token_id is None else _found(tokens_of(caller), token_id, "token")


def deletable_limit(caller: Caller, limit_id: UUID) -> Limit:
    """A limit of the caller's tenant."""
    return _found(Limit.objects.filter(tenant=caller.tenant), limit_id, "limit")


def writable_scope(caller: Caller, name: str | None) -> Scope:
    """The scope that keys and tokens go into: the caller's own, or (admins) the shared one.

    Raises NotFound.
    """
    if name is None or name == str(caller.scope.pk):
        return caller.scope
    shared = Scope.objects.filter(tenant=caller.tenant, kind=Scope.Kind.SHARED).first()
    if shared is None or name not in (SHARED, str(shared.pk)):
        raise NotFound("No such scope.", param="scope")
    _require_own(caller, shared.pk)
    return shared


def check_grant(
    caller: Caller, permissions: list[str], expires_at: datetime | None, now: datetime
) -> None:
    """A token gives no more than its maker has, and one made with a token does not outlive it.

    One that has limits of its own makes none: the new one would not have them. Raises
    PermissionRefused, and InvalidInput for a time that has passed.
    """
    beyond = sorted(set(permissions) - caller.permissions)
    if beyond:
        raise PermissionRefused(
            f"You do not hold {', '.join(beyond)} yourself.", param="permissions"
        )
    if caller.token is not None and Limit.objects.filter(token=caller.token).exists():
        raise PermissionRefused(
            "The token you call with has limits of its own, and makes no others.",
            code="limited_token",
        )
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires_at has passed.", param="expires_at")
    limit = caller.token.expires_at if caller.token else None
    if limit is not None and (expires_at is None or expires_at > limit):
        raise PermissionRefused(
            f"The token you call with expires at {limit.isoformat()}; one made with it may not"
            " last longer.",
            param="expires_at",
        )


def _require_own(caller: Caller, scope_id: UUID | None) -> None:
    if scope_id != caller.scope.pk:
        caller.require(ADMIN, ADMINS_ONLY)


def _found(rows: QuerySet[M], pk: UUID, what: str) -> M:
    row = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound(f"No such {what}.")
    return row
