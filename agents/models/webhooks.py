"""Webhooks: where tenants want to hear of their runs, and what was sent there."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from agents.models.events import Event
from agents.models.runs import Run
from agents.models.sealed import SealedRow
from tenants.managers import ScopedManager
from tenants.models import Tenant
from tenants.walls import Wall

ENDS = tuple(f"run.{status.value}" for status in Run.TERMINAL)
EVENT_TYPES = (*ENDS, f"run.{Run.Status.REQUIRES_ACTION.value}")
"""What a webhook can tell of."""


def all_event_types() -> list[str]:
    """What an endpoint hears of unless it says otherwise."""
    return list(EVENT_TYPES)


class WebhookEndpoint(SealedRow):
    """A URL of the tenant's, told of events of all its runs.

    The sealed value is the signing secret, followed by the one before it, which signs as well
    until ``previous_until``.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    url = models.CharField("URL", max_length=500)
    description = models.CharField(max_length=200, blank=True)
    event_types = ArrayField(models.CharField(max_length=40), default=all_event_types)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=200, blank=True, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    previous_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "webhook endpoint"
        constraints = (
            # The target of the foreign key that names an endpoint together with its tenant.
            models.UniqueConstraint(fields=["id", "tenant"], name="webhook_id_with_tenant"),
            models.CheckConstraint(
                condition=Q(event_types__len__gt=0)
                & Q(event_types__contained_by=list(EVENT_TYPES)),
                name="webhook_event_types_known",
            ),
            models.CheckConstraint(
                condition=Q(disabled_reason="") | Q(enabled=False),
                name="webhook_disabled_says_why",
            ),
        )

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """One event for one endpoint, sent until it is taken or given up. Its id is the webhook-id.

    ``attempts`` is also the fence: what a sender reports counts only while no other has begun.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    endpoint = models.ForeignKey(
        WebhookEndpoint, models.CASCADE, db_index=False, related_name="deliveries"
    )
    event = models.ForeignKey(Event, models.CASCADE, related_name="deliveries")
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    log = models.JSONField(default=list, help_text="Of each attempt when, what status or problem.")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    wall = Wall(read_by_whole=True)
    objects = ScopedManager["WebhookDelivery"]()

    class Meta:
        verbose_name_plural = "webhook deliveries"
        indexes = (
            models.Index(
                fields=["next_attempt_at"], condition=Q(status="pending"), name="delivery_due"
            ),
        )
        constraints = (
            models.UniqueConstraint(fields=["endpoint", "event"], name="delivery_once_per_event"),
            models.CheckConstraint(
                condition=Q(status="pending", next_attempt_at__isnull=False, ended_at__isnull=True)
                | Q(
                    status__in=["delivered", "failed"],
                    next_attempt_at__isnull=True,
                    ended_at__isnull=False,
                ),
                name="delivery_pending_or_ended",
            ),
        )

    def __str__(self) -> str:
        return f"delivery {self.id} ({self.status})"
