"""What a user of the admin site may see: everything, or the tenant that they run."""

from __future__ import annotations

import logging

from django.contrib.auth.models import User
from django.http import HttpRequest

from tenants.context import AllTenants, Reach, Where
from tenants.models import Membership
from tenants.selectors import memberships_of

log = logging.getLogger("tenants.walls")

RUNS_A_TENANT = (Membership.Role.OWNER, Membership.Role.ADMIN)


def is_operator(request: HttpRequest) -> bool:
    """Whether the user of the admin site is the installation's, and no tenant's."""
    user = request.user
    return isinstance(user, User) and user.is_active and user.is_staff and user.is_superuser


def admin_reach(request: HttpRequest) -> Where | None:
    """The operators' way through all walls, which is logged; a tenant's own staff stay in it."""
    user = request.user
    if not isinstance(user, User) or not (user.is_active and user.is_staff):
        return None
    if user.is_superuser:
        reason = f"admin site: user {user.pk} {request.method} {request.path}"
        log.info("through all walls: %s", reason)
        return AllTenants(reason)
    run = [each for each in memberships_of(user) if each.role in RUNS_A_TENANT]
    if not run:
        return None
    first = min(run, key=lambda each: each.tenant.slug)
    return Reach(first.tenant_id, actor=f"user {user.pk}")
