"""Webhook endpoints and their deliveries. No serializer here has a field for a stored secret."""

from __future__ import annotations

from rest_framework import serializers

from agents.models import WebhookDelivery, WebhookEndpoint
from agents.models.webhooks import EVENT_TYPES
from tenants.serializers_base import StrictSerializer

LONGEST_OVERLAP = 7 * 86_400


class WebhookEndpointChange(StrictSerializer):
    """What of an endpoint can change."""

    url = serializers.CharField(max_length=500)
    description = serializers.CharField(max_length=200, required=False, allow_blank=True)
    event_types = serializers.ListField(
        child=serializers.ChoiceField(EVENT_TYPES),
        required=False,
        min_length=1,
        help_text="All if left out.",
    )
    enabled = serializers.BooleanField(required=False)


class WebhookEndpointInput(WebhookEndpointChange):
    """An endpoint to define."""


class WebhookEndpointOutput(serializers.ModelSerializer[WebhookEndpoint]):
    """A webhook endpoint."""

    object = serializers.CharField(default="webhook_endpoint", read_only=True)

    class Meta:
        model = WebhookEndpoint
        fields: tuple[str, ...] = (
            "id", "object", "url", "description", "event_types", "enabled", "disabled_reason",
            "failing_since", "previous_until", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields


class NewWebhookEndpoint(WebhookEndpointOutput):
    """An endpoint with the secret that signs what it is sent, in the one answer that shows it."""

    secret = serializers.CharField(read_only=True, allow_null=True)

    class Meta(WebhookEndpointOutput.Meta):
        fields = (*WebhookEndpointOutput.Meta.fields, "secret")


class SecretRotation(StrictSerializer):
    """How a secret is replaced."""

    overlap_seconds = serializers.IntegerField(
        min_value=0,
        max_value=LONGEST_OVERLAP,
        default=86_400,
        help_text="How long the old secret signs as well.",
    )


class WebhookDeliveryOutput(serializers.ModelSerializer[WebhookDelivery]):
    """What became of one event for one endpoint; ``id`` is the webhook-id."""

    object = serializers.CharField(default="webhook_delivery", read_only=True)
    type = serializers.CharField(source="event.type", read_only=True)
    run_id = serializers.UUIDField(source="event.run_id", read_only=True)
    event_id = serializers.UUIDField(read_only=True)
    log = serializers.JSONField(read_only=True)

    class Meta:
        model = WebhookDelivery
        fields = (
            "id", "object", "type", "event_id", "run_id", "status", "attempts", "next_attempt_at",
            "log", "created_at", "ended_at",
        )  # fmt: skip
        read_only_fields = fields
