"""Who calls: an access token, or a signed-in person."""

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from tenants.caller import Caller


class AccessTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer brk_…``."""

    def authenticate(self, request: Request) -> tuple[object, Caller] | None:
        return None


class TenantSessionAuthentication(SessionAuthentication):
    """A browser session; ``X-Tenant: slug`` chooses where a person belongs to several tenants."""
