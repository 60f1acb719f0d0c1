"""What webhooks are to tell, written in the transaction of the event itself."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from celery import current_app
from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from agents.models import Event, WebhookDelivery, WebhookEndpoint
from agents.models.webhooks import EVENT_TYPES

DELIVER = "agents.deliver_webhooks"

log = logging.getLogger(__name__)


def queue_deliveries(run_id: UUID, events: Sequence[Event]) -> None:
    """Have the tenant's endpoints told of what they asked to hear of."""
    told = {event.type: event for event in events if event.type in EVENT_TYPES}
    if not told:
        return
    endpoints = WebhookEndpoint.objects.filter(
        tenant__runs=run_id, enabled=True, event_types__overlap=list(told)
    )
    deliveries = [
        WebhookDelivery(
            tenant_id=endpoint.tenant_id, endpoint=endpoint, event=event, next_attempt_at=Now()
        )
        for endpoint in endpoints
        for kind, event in told.items()
        if kind in endpoint.event_types
    ]
    if deliveries:
        WebhookDelivery.objects.bulk_create(deliveries)
        transaction.on_commit(ring_for_deliveries)


def ring_for_deliveries() -> None:
    """Have a worker send what is due now. What does not arrive, the beat makes up for."""
    try:
        current_app.send_task(DELIVER, retry=False, ignore_result=True)
    except OperationalError as error:
        log.warning("webhooks wait for the beat: %s", error)
