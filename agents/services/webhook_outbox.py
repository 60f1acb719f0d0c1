"""What webhooks are to tell, written in the transaction of the event itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from agents.models import Event, WebhookDelivery, WebhookEndpoint
from agents.models.webhooks import EVENT_TYPES
from agents.services.doorbell import ring

DELIVER = "agents.deliver_webhooks"


def queue_deliveries(events: Sequence[Event]) -> None:
    """Have the endpoints of the runs' tenants told of what they asked to hear of."""
    told = [event for event in events if event.type in EVENT_TYPES]
    if not told:
        return
    runs = {event.run_id for event in told}
    listening = WebhookEndpoint.objects.filter(enabled=True, tenant__runs__in=runs)
    endpoints = defaultdict(list)
    for endpoint in listening.annotate(run_id=F("tenant__runs__id")):
        endpoints[endpoint.run_id].append(endpoint)
    deliveries = [
        WebhookDelivery(
            tenant_id=endpoint.tenant_id, endpoint=endpoint, event=event, next_attempt_at=Now()
        )
        for event in told
        for endpoint in endpoints[event.run_id]
        if event.type in endpoint.event_types
    ]
    if deliveries:
        WebhookDelivery.objects.bulk_create(deliveries)
        transaction.on_commit(partial(ring, DELIVER))
