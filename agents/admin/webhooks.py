"""Webhook endpoints of all tenants, and what they were sent."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.admin.signing import SigningAdmin
from agents.models import WebhookDelivery, WebhookEndpoint
from agents.services.deliveries import replay
from agents.services.webhook_endpoints import (
    create_webhook_endpoint,
    delete_webhook_endpoint,
    update_webhook_endpoint,
)
from tenants.admin.base import KeptAdmin
from tenants.errors import Conflict


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(SigningAdmin):
    """Webhook endpoints, without the secrets that sign what they are sent."""

    fields = ("tenant", "url", "description", "event_types", "enabled")
    list_display = ("url", "tenant", "enabled", "disabled_reason", "failing_since", "state")
    list_filter = ("enabled",)
    list_select_related = ("tenant", "data_key")
    search_fields = ("url", "tenant__slug")
    autocomplete_fields = ("tenant",)

    def get_readonly_fields(self, request: HttpRequest, obj: WebhookEndpoint | None = None) -> Any:
        """A stored endpoint keeps its tenant."""
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "tenant") if obj else fields

    def save_model(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        obj: WebhookEndpoint,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save through the service; a new secret travels to the one answer that shows it."""
        values = dict(form.cleaned_data)
        if change:
            update_webhook_endpoint(endpoint=obj, values=values)
            return
        new = create_webhook_endpoint(tenant=values.pop("tenant"), values=values)
        obj.pk = new.endpoint.pk
        obj.shown_once = new.secret  # type: ignore[attr-defined]

    def delete_row(self, row: WebhookEndpoint) -> None:
        """With the log of its deliveries, which the audit log is told of."""
        delete_webhook_endpoint(endpoint=row)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(KeptAdmin):
    """The delivery log: to read, and to send again."""

    list_display = ("id", "status", "event", "endpoint", "attempts", "next_attempt_at")
    list_filter = ("status",)
    list_select_related = ("endpoint", "event")
    ordering = ("-id",)
    search_fields = ("endpoint__url",)
    actions = ("replay_chosen",)

    def has_add_permission(self, *_: Any) -> bool:
        """Deliveries come of events."""
        return False

    def has_change_permission(self, *_: Any) -> bool:
        """They change through what happens to them."""
        return False

    def has_replay_permission(self, request: HttpRequest) -> bool:
        """Who may change deliveries, were they changed by hand."""
        return request.user.has_perm("agents.change_webhookdelivery")

    @admin.action(description="Send the chosen deliveries again", permissions=["replay"])
    def replay_chosen(self, request: HttpRequest, deliveries: QuerySet[WebhookDelivery]) -> None:
        """The action on the list."""
        sent = 0
        for delivery in deliveries:
            try:
                replay(delivery=delivery)
            except Conflict as error:
                self.message_user(request, f"{delivery}: {error.message}", messages.WARNING)
            else:
                sent += 1
        self.message_user(request, f"{sent} are sent again.")
