"""The journal in the admin: read only, and no page counts or sorts the table."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.functional import cached_property
from django.utils.html import format_html
from unfold.admin import ModelAdmin, TabularInline  # type: ignore[import-untyped]

from journal.figures_page import figures_context
from journal.models import Call, Rating, RetentionPolicy
from journal.services import keep_calls
from tenants.admin.base import ServiceAdmin
from tenants.errors import NotFound
from tenants.models import Scope, Tenant
from tenants.pagination import whole_number
from tenants.services.audit import values_of

LAST_PAGE = 200


class ReadAheadPaginator(Paginator):  # type: ignore[type-arg]  # no generic at run time
    """Knows of one page more than the one asked for, instead of counting them all."""

    def __init__(self, calls: QuerySet[Call], per_page: int, *, page: int) -> None:
        super().__init__(calls, per_page)
        self.known = calls.values("id")[: per_page * (min(page, LAST_PAGE) + 1)]

    @cached_property
    def count(self) -> int:
        """The number of rows up to the end of the next page."""
        return self.known.count()


class CallList(ChangeList):
    """A page of calls, newest first whatever the URL asks for: other orders sort the table."""

    def get_ordering(self, *_: object) -> list[str | Combinable]:
        return ["-id"]

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, then whose calls those are: a join would be made for every row."""
        super().get_results(request)
        calls: Iterable[Call] = self.result_list
        scopes = Scope.objects.select_related("tenant").in_bulk({call.scope_id for call in calls})
        for call in calls:
            vars(call)["scope"] = scopes.get(call.scope_id)


class ReadOnly:
    """The journal is written by calls and ratings alone."""

    def has_add_permission(self, *_: object) -> bool:
        return False

    def has_change_permission(self, *_: object) -> bool:
        return False

    def has_delete_permission(self, *_: object) -> bool:
        return False


class RatingInline(ReadOnly, TabularInline):  # type: ignore[misc]
    """A call's ratings, the newest of which counts."""

    model = Rating
    fields = ("created_at", "score", "created_by")
    extra = 0


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(ServiceAdmin):
    """How long tenants keep what. Saved through the service, which tells the audit log."""

    list_display = ("tenant_id", "metadata_days", "keep_payloads", "payload_days")

    def get_readonly_fields(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: RetentionPolicy | None = None,
    ) -> tuple[str, ...]:
        """A policy stays its tenant's."""
        return ("tenant_id",) if obj else ()

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: RetentionPolicy,
        form: Any,  # noqa: ARG002
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        values = values_of(obj, ("metadata_days", "payload_days", "keep_payloads"))
        keep_calls(tenant=_tenant(obj.tenant_id), values=values)
        obj.pk = RetentionPolicy.objects.get(tenant_id=obj.tenant_id).pk

    def delete_row(self, row: RetentionPolicy) -> None:
        """Go back to the installation's days."""
        keep_calls(tenant=_tenant(row.tenant_id), values=None)


def _tenant(identity: UUID) -> Tenant:
    tenant = Tenant.objects.filter(pk=identity).first()
    if tenant is None:
        raise NotFound("There is no tenant with this id.", param="tenant_id")
    return tenant


@admin.register(Call)
class CallAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """Every scope's calls, newest first."""

    list_display = (
        "ts",
        "whose",
        "llm_name",
        "status",
        "operation",
        "trace",
        "key_source",
        "latency_ms",
        "total_tokens",
        "cost",
    )
    # Filters with fixed choices: one on a text column would look up its distinct values.
    list_filter = ("status", "key_source", "streamed")
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()
    ordering = ("-id",)
    search_fields = ("id",)
    search_help_text = "The id of a call, a scope or a tenant; after it, if you like, a trace."
    inlines = (RatingInline,)

    def get_urls(self) -> list[URLPattern]:
        """With the page of figures, before the pages of single calls."""
        page = self.admin_site.admin_view(self.figures)
        return [path("figures/", page, name="journal_figures"), *super().get_urls()]

    def figures(self, request: HttpRequest) -> HttpResponse:
        """Calls, cost and latency of the last days, of everybody or of one tenant."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": "Figures",
            **figures_context(request.GET.dict()),
        }
        return render(request, "admin/journal/figures.html", context)

    def get_changelist(self, *_: object, **__: object) -> type[ChangeList]:
        return CallList

    def get_paginator(
        self, request: HttpRequest, queryset: QuerySet[Call], per_page: int, *_: object
    ) -> ReadAheadPaginator:
        page = whole_number(request.GET.get("p", "1"), 1, 10**9)
        return ReadAheadPaginator(queryset, per_page, page=page or 1)

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        queryset: QuerySet[Call],
        search_term: str,
    ) -> tuple[QuerySet[Call], bool]:
        words = search_term.split()
        if not words:
            return queryset, False
        try:
            identity = UUID(words[0])
        except ValueError:
            return queryset.none(), False
        named = Q(id=identity) | Q(scope_id=identity) | Q(tenant_id=identity)
        return queryset.filter(named, *[Q(trace_id=trace) for trace in words[1:]]), False

    @admin.display(description="tenant and scope")
    def whose(self, call: Call) -> str:
        """The tenant and the scope, which may be gone since."""
        scope: Scope | None = vars(call)["scope"]
        return f"{scope.tenant}: {scope.name}" if scope else str(call.scope_id)

    @admin.display(description="cost, $")
    def cost(self, call: Call) -> str:
        """In dollars."""
        return "" if call.cost_micros is None else f"{call.cost_micros / 1_000_000:.6f}"

    @admin.display(description="trace")
    def trace(self, call: Call) -> str:
        """A link to the calls of the same trace."""
        if call.trace_id is None:
            return ""
        query = f"?scope_id={call.scope_id}&trace_id={quote(call.trace_id)}"
        return format_html('<a href="{}">{}</a>', query, call.trace_id)
