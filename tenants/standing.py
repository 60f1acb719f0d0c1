"""Whether callers may still do what they were let in for: asked again while a stream lasts."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from tenants.authentication import permissions_of_token, tokens_with_role
from tenants.caller import Caller
from tenants.errors import NotAuthenticated
from tenants.models import AccessToken, Membership
from tenants.roles import OF_ROLE


def still_allowed(
    callers: Collection[Caller], permission: str, *, now: datetime
) -> frozenset[Caller]:
    """Those of ``callers`` whose token or membership gives ``permission`` today.

    Two queries for all of them, so it runs within the operator's reach.
    """
    tokens = {
        token.pk: token
        for token in tokens_with_role().filter(
            pk__in={caller.token.pk for caller in callers if caller.token}
        )
    }
    people = {caller.user.pk for caller in callers if caller.token is None and caller.user}
    roles = {
        (tenant, user): role
        for tenant, user, role in Membership.objects.filter(
            user__in=people, user__is_active=True
        ).values_list("tenant_id", "user_id", "role")
    }

    def allowed(caller: Caller) -> bool:
        if caller.token is not None:
            return permission in _granted(tokens.get(caller.token.pk), now)
        role = roles.get((caller.tenant.pk, caller.user.pk)) if caller.user else None
        return role is not None and permission in OF_ROLE[role]

    return frozenset(filter(allowed, callers))


def _granted(token: AccessToken | None, now: datetime) -> frozenset[str]:
    if token is None or not token.is_live(now):
        return frozenset()
    try:
        return permissions_of_token(token)
    except NotAuthenticated:
        return frozenset()
