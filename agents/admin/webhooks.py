"""Webhook endpoints of all tenants, and what they were sent."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from agents.models import WebhookDelivery, WebhookEndpoint
from agents.sealing import is_readable
from agents.services.deliveries import replay
from agents.services.webhook_endpoints import create_webhook_endpoint, update_webhook_endpoint
from tenants.admin.base import KeptAdmin, ServiceAdmin
from tenants.errors import Conflict


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ServiceAdmin):
    """Webhook endpoints, without the secrets that sign what they are sent."""

    fields = ("tenant", "url", "description", "event_types", "enabled")
    list_display = ("url", "tenant", "enabled", "disabled_reason", "failing_since", "state")
    list_filter = ("enabled",)
    list_select_related = ("tenant", "data_key")
    search_fields = ("url", "tenant__slug")
    autocomplete_fields = ("tenant",)

    @admin.display(description="secret")
    def state(self, endpoint: WebhookEndpoint) -> str:
        """Whether its secret can be opened."""
        return "stored" if is_readable(endpoint) else "needs a new one"

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

    def response_add(
        self,
        request: HttpRequest,
        obj: WebhookEndpoint,
        post_url_continue: str | None = None,  # noqa: ARG002
    ) -> HttpResponse:
        """Show the secret. Not as a message: those wait in a cookie or in the database."""
        context = {
            **self.admin_site.each_context(request),
            "title": "Signing secret",
            "opts": self.opts,
            "secret": obj.shown_once.reveal(),  # type: ignore[attr-defined]
        }
        return TemplateResponse(request, "admin/agents/secret_once.html", context)


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

    @admin.action(description="Send the chosen deliveries again")
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
