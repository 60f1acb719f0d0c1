"""How the API description (drf-spectacular) names our two ways to authenticate."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class AccessTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Bearer tokens."""

    target_class = "tenants.authentication.AccessTokenAuthentication"
    name = "accessToken"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002
        """The OpenAPI object."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "brk_…"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The admin site's session."""

    target_class = "tenants.authentication.TenantSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002
        """The OpenAPI object."""
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
