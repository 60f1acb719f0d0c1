"""Ratings. Calls are written by the process's writer (writer.py)."""

from uuid import UUID

from django.contrib.auth.models import User

from journal import selectors
from journal.models import Rating
from llmbroker.models import check_score
from tenants.errors import NotFound


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
