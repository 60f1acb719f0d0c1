"""Ratings and retention policies. Calls are written by the process's writer (writer.py)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from journal import selectors
from journal.models import Rating, RetentionPolicy
from llmbroker.models import check_score
from tenants.errors import NotFound
from tenants.models import Tenant
from tenants.services.audit import difference, note, values_of


def rate(
    *,
    score: float,
    scope_id: UUID | None,
    call_id: UUID | None = None,
    trace_id: str | None = None,
    created_by: User | None = None,
) -> Rating:
    """Rate an answered call: the one named, or the newest of the trace.

    Without a scope any scope's call can be named. Raises NotFound if none was answered.
    """
    check_score(score)
    if scope_id is None:
        calls = selectors.calls_of_installation()
    else:
        calls = selectors.calls_of_scope(scope_id)
    named = selectors.narrowed(calls, id=call_id, trace_id=trace_id)
    call = selectors.answered(named).order_by("-id").first()
    if call is None:
        raise NotFound("No answered call of that id or trace.", code="unknown_call")
    return Rating.objects.create(
        call=call,
        scope_id=call.scope_id,
        tenant_id=call.tenant_id,
        score=score,
        created_by=created_by,
    )


@transaction.atomic
def keep_calls(*, tenant: Tenant, values: Mapping[str, Any] | None) -> None:
    """Change the given fields of a tenant's retention policy; None is the settings' again."""
    policy = selectors.policy_of(tenant.pk)
    before = values_of(policy, ("metadata_days", "payload_days", "keep_payloads"))
    if values is None:
        RetentionPolicy.objects.filter(tenant_id=tenant.pk).delete()
    else:
        policy, _ = RetentionPolicy.objects.update_or_create(
            tenant_id=tenant.pk, defaults={**before, **values}
        )
    changes = {"policy": None} if values is None else difference(before, policy)
    note("retention.calls", policy, tenant_id=tenant.pk, changes=changes)
