"""Who is calling, as every view and service sees it."""

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from rest_framework.request import Request

from tenants.context import Reach
from tenants.errors import NotAuthenticated, PermissionRefused
from tenants.models import AccessToken, Scope, Tenant
from tenants.roles import ADMIN


@dataclass(frozen=True)
class Caller:
    """A scope of a tenant, the person behind it, and what may be done."""

    tenant: Tenant
    scope: Scope
    user: User | None
    token: AccessToken | None
    permissions: frozenset[str]

    @property
    def reach(self) -> Reach:
        """What the database lets the caller touch: an admin's is the whole tenant."""
        scope_id = None if self.may(ADMIN) else self.scope.pk
        return self._reach(scope_id)

    @property
    def own_reach(self) -> Reach:
        """The caller's own scope, whatever else it may do."""
        return self._reach(self.scope.pk)

    def _reach(self, scope_id: UUID | None) -> Reach:
        token, user = self.token, self.user
        names = [f"user {user.pk}"] if user else []
        names += [f"token {token.token_id}"] if token else []
        return Reach(self.tenant.pk, scope_id, token.pk if token else None, actor=", ".join(names))

    def may(self, permission: str) -> bool:
        """Whether the caller holds ``permission``."""
        return permission in self.permissions

    def require(self, permission: str, why: str) -> None:
        """PermissionRefused with the sentence ``why`` unless the caller holds ``permission``."""
        if not self.may(permission):
            raise PermissionRefused(why)


def caller_of(request: Request) -> Caller:
    """The caller that authentication found. Raises NotAuthenticated."""
    if not isinstance(request.auth, Caller):
        raise NotAuthenticated("Send an access token: 'Authorization: Bearer brk_…'.")
    return request.auth
