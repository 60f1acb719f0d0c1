"""The audit log, to read."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from tenants.admin.base import KeptAdmin
from tenants.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(KeptAdmin):
    """Who changed what, newest first."""

    list_display = ("created_at", "tenant_id", "actor", "action", "object_name", "changes")
    ordering = ("-id",)
    sortable_by = ()
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    search_fields = ("id",)
    search_help_text = "The id of a tenant, or of what was changed."

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        queryset: QuerySet[AuditEntry],
        search_term: str,
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """By exact ids."""
        if not search_term.strip():
            return queryset, False
        try:
            identity = UUID(search_term.strip())
        except ValueError:
            return queryset.none(), False
        return queryset.filter(Q(tenant_id=identity) | Q(object_id=identity)), False

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        """Never here."""
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        """Never."""
        return False
