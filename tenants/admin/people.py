"""Tenants, members, scopes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import BaseInlineFormSet
from django.http import HttpRequest

from tenants.admin.base import KeptAdmin, TabularInline
from tenants.admin_reach import is_operator
from tenants.models import Membership, Scope, Tenant
from tenants.services.people import (
    ensure_personal_scope,
    ensure_shared_scope,
    note_member,
    set_key_policy,
)


class MembershipInline(TabularInline):
    """The people of a tenant."""

    model = Membership
    fields = ("user", "role")
    autocomplete_fields = ("user",)
    extra = 0

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A tenant's own staff choose among its people; whom else there is, is not for them."""
        if not is_operator(request):
            known = Scope.objects.exclude(user=None).values("user")
            kwargs["queryset"] = User.objects.filter(pk__in=known)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


@admin.register(Tenant)
class TenantAdmin(KeptAdmin):
    """Tenants. Deleting one erases its keys and its journal, which is a command's work."""

    list_display = ("slug", "name", "members", "uses_installation_keys", "created_at")
    search_fields = ("^slug", "^name")
    search_help_text = "How a slug or a name begins."
    inlines = (MembershipInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        """With the number of members, which is counted for the tenants on the page alone."""
        tenants: QuerySet[Tenant] = super().get_queryset(request)
        members = Membership.objects.filter(tenant=OuterRef("pk")).order_by()
        counted = members.values("tenant").annotate(count=Count("pk")).values("count")
        return tenants.annotate(member_count=Coalesce(Subquery(counted), 0))

    @admin.display(ordering="member_count")
    def members(self, tenant: Tenant) -> int:
        """How many members."""
        count: int = getattr(tenant, "member_count", 0)
        return count

    def get_readonly_fields(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: Tenant | None = None,
    ) -> tuple[str, ...]:
        """A slug is in the requests of others: it stays."""
        return ("slug",) if obj else ()

    def save_model(
        self,
        request: HttpRequest,
        obj: Tenant,
        form: Any,
        change: bool,  # noqa: FBT001 - Django's signature
    ) -> None:
        """A tenant has a shared scope."""
        super().save_model(request, obj, form, change)
        ensure_shared_scope(tenant=obj)

    def save_formset(
        self,
        request: HttpRequest,
        form: Any,
        formset: BaseInlineFormSet[Any, Any, Any],
        change: bool,  # noqa: FBT001
    ) -> None:
        """A member has a personal scope."""
        super().save_formset(request, form, formset, change)
        for membership in formset.new_objects:
            ensure_personal_scope(tenant=membership.tenant, user=membership.user)
            note_member("member.added", membership)
        for membership, _ in formset.changed_objects:
            note_member("member.changed", membership)
        for membership in formset.deleted_objects:
            note_member("member.removed", membership)


@admin.register(Scope)
class ScopeAdmin(KeptAdmin):
    """Scopes come with tenants and members; what changes is whose keys they may use."""

    list_display = ("name", "kind", "tenant", "user", "key_policy")
    list_filter = ("kind", "key_policy")
    list_select_related = ("tenant", "user")
    search_fields = ("^name", "^tenant__slug", "^user__email")
    search_help_text = "How a name, a tenant's slug or a person's email begins."
    readonly_fields = ("tenant", "kind", "user", "name", "id")

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        """Never here."""
        return False

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: Scope,
        form: Any,  # noqa: ARG002
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        """Save through the service, which tells the audit log."""
        set_key_policy(scope=Scope.objects.get(pk=obj.pk), policy=obj.key_policy)
