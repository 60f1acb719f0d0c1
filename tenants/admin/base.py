"""What all admin pages of this app share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from tenants.admin.lists import LatePaginator, matching
from tenants.errors import ApplicationError

# The stubs' classes are generic and Django's are not; unfold has no stubs and the same methods.
if TYPE_CHECKING:
    from django import forms
    from django.contrib import admin

    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    from django.forms import ModelForm
    from unfold.admin import ModelAdmin, TabularInline

__all__ = ["KeptAdmin", "ModelAdmin", "ModelForm", "ServiceAdmin", "TabularInline"]


class ServiceAdmin(ModelAdmin):
    """Saves and deletes through services: what one refuses becomes a message, and nothing is
    written."""

    show_full_result_count = False
    list_per_page = 50
    ordering = ("-pk",)
    paginator = LatePaginator

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Those of ``queryset`` that are searched for; never one of them twice."""
        fields = self.get_search_fields(request)
        return matching(search_term.split(), queryset, fields), False

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of one object; its own transaction is rolled back on a refusal."""
        return self._or_say_why(
            request, super().changeform_view, object_id, form_url, extra_context
        )

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The page that deletes one object, in a transaction of its own as well."""
        return self._or_say_why(request, super().delete_view, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The list, and its actions."""
        return self._or_say_why(request, super().changelist_view, *args, **kwargs)

    def delete_row(self, row: Any) -> None:
        """Delete one row, through the service that does so over the API."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its rows are deleted")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:  # noqa: ARG002
        """From its own page."""
        self.delete_row(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:  # noqa: ARG002
        """From the list: all of them, or none."""
        with transaction.atomic():
            for row in queryset:
                self.delete_row(row)

    def _or_say_why(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponse],
        *args: Any,
        **kwargs: Any,
    ) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except ApplicationError as error:
            self.message_user(request, error.message, messages.ERROR)
            return redirect(request.get_full_path())


class KeptAdmin(ServiceAdmin):
    """Rows that nobody deletes here."""

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        """Never."""
        return False
