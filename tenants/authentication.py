"""Who calls: an access token, or a signed-in person."""

import hashlib
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from tenants.caller import Caller
from tenants.context import Lookup, Reach, enter, scope_active
from tenants.errors import InvalidInput, NotAuthenticated, PermissionRefused
from tenants.models import AccessToken, Membership, Scope
from tenants.outage import process_memory
from tenants.roles import OF_ROLE
from tenants.selectors import memberships_of, scope_of
from tenants.services.tokens import is_genuine, note_token_use
from tenants.tokens import TokenText, parse_token

USE_NOTED_EVERY = timedelta(minutes=5)

# One sentence for every reason: an answer that tells them apart helps only a guesser.
REFUSED = (
    "This access token is not valid, or no longer so: it is incomplete, has expired or was revoked."
    " Make another in the admin site, or by POST /api/v1/tokens with one that is valid."
)


class AccessTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer brk_…``."""

    def authenticate(self, request: Request) -> tuple[User | AnonymousUser, Caller] | None:
        """The token's user and caller; None without a Bearer header."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        caller = caller_by_token(text.strip(), now=timezone.now())
        enter(caller.reach)
        return caller.user or AnonymousUser(), caller

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - DRF's signature
        """What a 401 asks for."""
        return "Bearer"


class TenantSessionAuthentication(SessionAuthentication):
    """A browser session; ``X-Tenant: slug`` chooses where a person belongs to several tenants."""

    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        """The signed-in user and caller; None without a session."""
        signed_in = super().authenticate(request)
        if signed_in is None:
            return None
        user: User = signed_in[0]
        caller = caller_by_membership(user, slug=request.headers.get("X-Tenant"))
        enter(caller.reach)
        return user, caller


def caller_by_token(text: str, *, now: datetime) -> Caller:
    """Who holds this token. NotAuthenticated if nobody may.

    While the database is away, a token in use is who it was; one that has expired since is not.
    """
    parsed = parse_token(text)
    if parsed is None:
        raise NotAuthenticated(REFUSED)
    question = ("token", hashlib.sha256(text.encode()).digest())
    caller: Caller = process_memory().ask_now(question, lambda: _caller_of(parsed, now))
    if caller.token is None or not caller.token.is_live(now):
        raise NotAuthenticated(REFUSED)
    return caller


def _caller_of(parsed: TokenText, now: datetime) -> Caller:
    reach = _reach_of_token(parsed.token_id)
    if reach is None:
        raise NotAuthenticated(REFUSED)
    with scope_active(reach):
        token = tokens_with_role().filter(token_id=parsed.token_id).first()
        if token is None or not token.is_live(now) or not is_genuine(token=token, text=parsed):
            raise NotAuthenticated(REFUSED)
        permissions = permissions_of_token(token)
        note_token_use(token=token, now=now, not_since=now - USE_NOTED_EVERY)
    user = token.scope.user or token.created_by
    return Caller(token.tenant, token.scope, user, token, permissions)


def caller_by_membership(user: User, *, slug: str | None) -> Caller:
    """A person acting for themselves in the tenant named, or in their only one.

    Raises PermissionRefused where they belong to none, InvalidInput where to several.
    """
    found = memberships_of(user, slug=slug)
    if not found:
        raise PermissionRefused("You do not belong to this tenant.", code="no_tenant")
    if len(found) > 1:
        raise InvalidInput(
            "You belong to several tenants: name one in the X-Tenant header.",
            code="tenant_required",
            param="X-Tenant",
        )
    tenant = found[0].tenant
    return Caller(tenant, scope_of(user, tenant), user, None, OF_ROLE[found[0].role])


def _reach_of_token(token_id: str) -> Reach | None:
    """Whose token it is. Its row can be read by that name alone, and nothing beside it."""
    with scope_active(Lookup(f"token:{token_id}")):
        found = AccessToken.unscoped.filter(token_id=token_id)
        place = found.values_list("tenant_id", "scope_id").first()
    return Reach(*place) if place else None


def tokens_with_role() -> QuerySet[AccessToken]:
    """Tokens, each with the role that its scope's person has today."""
    role = Membership.objects.filter(tenant=OuterRef("tenant"), user=OuterRef("scope__user"))
    return AccessToken.objects.select_related(
        "tenant", "scope__user", "created_by", "pepper"
    ).annotate(owner_role=Subquery(role.values("role")[:1]))


def permissions_of_token(token: AccessToken) -> frozenset[str]:
    """What the token says; one of a personal scope never exceeds what its person may do today.

    ``token`` comes from ``tokens_with_role``. Raises NotAuthenticated.
    """
    granted = frozenset(token.permissions)
    if token.scope.kind == Scope.Kind.SHARED:
        return granted
    role: str | None = getattr(token, "owner_role", None)
    if role is None or token.scope.user is None or not token.scope.user.is_active:
        raise NotAuthenticated(REFUSED)
    return granted & OF_ROLE[role]
