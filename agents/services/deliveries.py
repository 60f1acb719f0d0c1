"""Webhook deliveries: taken when due, sent outside of any transaction, recorded.

A sender that dies leaves a delivery that is due again after CLAIM; so an event may arrive twice,
with one webhook-id, and is never lost.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import orjson
from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from agents.models import WebhookDelivery, WebhookEndpoint
from agents.services.doorbell import ring
from agents.services.webhook_endpoints import signing_secrets
from agents.services.webhook_outbox import DELIVER
from agents.tool_sources.signing import signed_headers
from tenants.errors import Conflict, SecretUnavailable
from tenants.services.audit import note

WAITS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
"""Before the second attempt, the third, …: three and a half days, as Standard Webhooks advises."""

JITTER = 0.2
DISABLED_AFTER = timedelta(days=5)
"""An endpoint that has taken nothing for so long is switched off."""

CLAIM = timedelta(seconds=60)
BATCH = 50
PER_ENDPOINT = 5
"""Of one batch, so that a server that hangs holds up few others."""

Status = WebhookDelivery.Status
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is to be sent, and by which attempt."""

    delivery_id: Any
    attempt: int
    url: str
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """What came of an attempt: the status of the answer, or why there is none."""

    outgoing: Outgoing
    status: int | None = None
    problem: str = ""

    @property
    def is_taken(self) -> bool:
        """Whether the endpoint has it now."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """Whether the endpoint says that it is no more."""
        return self.status == 410


def claim_due(*, now: datetime) -> list[Outgoing]:
    """Take a batch of what is due. No other sender gets it before CLAIM has passed."""
    due = WebhookDelivery.objects.filter(
        status=Status.PENDING, next_attempt_at__lte=now, endpoint__enabled=True
    )
    place = Window(RowNumber(), partition_by="endpoint", order_by="next_attempt_at")
    ranked = due.annotate(place=place).filter(place__lte=PER_ENDPOINT)
    chosen = list(ranked.order_by("place", "next_attempt_at").values_list("pk", flat=True)[:BATCH])
    with transaction.atomic():
        rows = list(
            due.filter(pk__in=chosen)
            .select_for_update(skip_locked=True, of=("self",))
            .select_related("event", "endpoint__tenant", "endpoint__data_key")
        )
        taken = WebhookDelivery.objects.filter(pk__in=[row.pk for row in rows])
        taken.update(attempts=F("attempts") + 1, next_attempt_at=now + CLAIM)
    return [outgoing for row in rows if (outgoing := _outgoing(row, now)) is not None]


def record(reports: Sequence[Report], *, now: datetime) -> None:
    """Note what came of attempts, each on its own."""
    for report in reports:
        with transaction.atomic():
            _record(report, now)


@transaction.atomic
def replay(*, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send it once more, with the same id, and with all its attempts before it if it fails.

    Raises Conflict while it is on its way, or its endpoint is switched off.
    """
    delivery = WebhookDelivery.objects.select_for_update(of=("self",)).get(pk=delivery.pk)
    if delivery.status == Status.PENDING:
        raise Conflict("This delivery is still on its way.", code="delivery_pending")
    if not delivery.endpoint.enabled:
        raise Conflict("Its endpoint is switched off.", code="endpoint_disabled")
    delivery.status, delivery.attempts, delivery.ended_at = Status.PENDING, 0, None
    delivery.next_attempt_at = timezone.now()
    delivery.save()
    note("webhook_delivery.replayed", delivery, tenant_id=delivery.tenant_id)
    transaction.on_commit(partial(ring, DELIVER))
    return delivery


def body_of(delivery: WebhookDelivery) -> bytes:
    """What is sent: who wants to know more asks the API, with a token of its own."""
    event = delivery.event
    return orjson.dumps(
        {
            "id": str(event.pk),
            "type": event.type,
            "created_at": event.created_at.isoformat().replace("+00:00", "Z"),
            "data": {"id": str(event.run_id)},
        }
    )


def _outgoing(row: WebhookDelivery, now: datetime) -> Outgoing | None:
    body = body_of(row)
    try:
        secrets = signing_secrets(row.endpoint, now)
    except SecretUnavailable as error:
        report = Report(Outgoing(row.pk, row.attempts + 1, "", b"", {}), problem=error.message)
        record([report], now=now)
        return None
    signed = signed_headers(*secrets, message_id=str(row.pk), body=body, now=now)
    headers = {"Content-Type": "application/json", **signed}
    return Outgoing(row.pk, row.attempts + 1, row.endpoint.url, body, headers)


def _record(report: Report, now: datetime) -> None:
    attempt = report.outgoing.attempt
    row = (
        WebhookDelivery.objects.select_for_update(of=("self",))
        .filter(pk=report.outgoing.delivery_id, attempts=attempt, status=Status.PENDING)
        .first()
    )
    if row is None:
        return  # deleted, or another sender has it now
    row.log.append({"at": now.isoformat(), "status": report.status, "problem": report.problem})
    row.log = row.log[-2 * len(WAITS) :]
    given_up = report.is_gone or attempt > len(WAITS)
    if report.is_taken or given_up:
        row.status = Status.DELIVERED if report.is_taken else Status.FAILED
        row.next_attempt_at, row.ended_at = None, now
    else:
        wait = WAITS[attempt - 1]
        row.next_attempt_at = now + wait * random.uniform(1 - JITTER, 1 + JITTER)
    row.save()
    _judge(row, report, now)


def _judge(row: WebhookDelivery, report: Report, now: datetime) -> None:
    """Remember how the endpoint is doing; switch off one that is gone or takes nothing."""
    endpoints = WebhookEndpoint.objects.filter(pk=row.endpoint_id)
    if report.is_taken:
        endpoints.exclude(failing_since=None).update(failing_since=None)
        return
    endpoints.filter(failing_since=None).update(failing_since=now)
    if report.is_gone:
        _switch_off(row, "It answered 410 Gone.")
    elif endpoints.filter(failing_since__lte=now - DISABLED_AFTER).exists():
        _switch_off(row, f"It took nothing for {DISABLED_AFTER.days} days.")


def _switch_off(row: WebhookDelivery, why: str) -> None:
    enabled = WebhookEndpoint.objects.filter(pk=row.endpoint_id, enabled=True)
    if enabled.update(enabled=False, disabled_reason=why):
        log.warning("webhook endpoint %s is switched off: %s", row.endpoint_id, why)
        changes = {"enabled": [True, False], "why": why}
        note("webhook_endpoint.disabled", row.endpoint, tenant_id=row.tenant_id, changes=changes)
