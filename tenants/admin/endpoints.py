"""Endpoints of tenants' own."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from tenants.admin.base import ModelForm, ServiceAdmin
from tenants.models import Endpoint
from tenants.services.endpoints import delete_endpoint, update_endpoint


class EndpointForm(ModelForm):
    """An endpoint."""

    class Meta:
        model = Endpoint
        fields = (
            "tenant", "scope", "name", "base_url", "model", "api_key_ref", "parallel", "weight",
            "context_window", "enabled",
        )  # fmt: skip


@admin.register(Endpoint)
class EndpointAdmin(ServiceAdmin):
    """Models beside the common pool."""

    form = EndpointForm
    list_display = ("name", "tenant", "scope", "base_url", "model", "api_key_ref", "enabled")
    list_filter = ("enabled",)
    list_select_related = ("tenant", "scope")
    search_fields = ("name", "tenant__slug", "base_url", "model")
    autocomplete_fields = ("tenant", "scope")

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: Endpoint,
        form: Any,  # noqa: ARG002
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        """Save through the service, which checks the URL and whose scope it is."""
        update_endpoint(endpoint=obj, values={})

    def delete_row(self, row: Endpoint) -> None:
        """Which the audit log is told of."""
        delete_endpoint(endpoint=row)
