"""Limits, set through their service."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from tenants.admin.base import ServiceAdmin
from tenants.models import Limit
from tenants.services.limits import delete_limit, set_limit


@admin.register(Limit)
class LimitAdmin(ServiceAdmin):
    """Limits of tenants, scopes and tokens. To change one, its value is set anew."""

    list_display = ("kind", "value", "of", "tenant", "scope", "token")
    list_filter = ("kind",)
    list_select_related = ("tenant", "scope", "token")
    search_fields = ("tenant__slug",)
    autocomplete_fields = ("tenant", "scope", "token")

    def get_readonly_fields(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: Limit | None = None,
    ) -> tuple[str, ...]:
        """What a limit limits stays."""
        return ("tenant", "scope", "token", "kind") if obj else ()

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: Limit,
        form: Any,  # noqa: ARG002
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        """Set it through the service, which checks it and tells the audit log."""
        limit = set_limit(
            tenant=obj.tenant, kind=obj.kind, value=obj.value, scope=obj.scope, token=obj.token
        )
        obj.pk = limit.pk

    def delete_row(self, row: Limit) -> None:
        """Take it away, which the audit log is told of."""
        delete_limit(limit=row)
