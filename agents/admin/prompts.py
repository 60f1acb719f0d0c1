"""Prompt functions of all tenants, to read: they are written over the API, version by version."""

from typing import Any

from django.contrib import admin

from agents.models import PromptFunction, PromptVersion
from agents.services.prompts import delete_prompt
from tenants.admin.base import ServiceAdmin, TabularInline


class VersionInline(TabularInline):
    """What a prompt said over time."""

    model = PromptVersion
    extra = 0
    can_delete = False
    fields = ("number", "template", "description", "variables", "tools", "effect", "created_at")
    readonly_fields = fields

    def has_add_permission(self, *_: Any) -> bool:
        """A version comes over the API, where its template is checked."""
        return False


@admin.register(PromptFunction)
class PromptFunctionAdmin(ServiceAdmin):
    """Prompt functions, with their versions."""

    list_display = ("slug", "tenant", "created_at")
    list_select_related = ("tenant",)
    search_fields = ("slug", "tenant__slug")
    readonly_fields = ("tenant", "slug", "created_at")
    inlines = (VersionInline,)

    def has_add_permission(self, *_: Any) -> bool:
        """Prompt functions are defined over the API."""
        return False

    def delete_row(self, row: PromptFunction) -> None:
        """Unless somebody still uses it."""
        delete_prompt(prompt=row)
