"""Writing the journal: an attempt's intent, its outcome once, and ratings."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError
from psycopg.errors import NotNullViolation

from journal import selectors
from journal.models import Call, Rating
from llmbroker.errors import LLMBrokerError
from llmbroker.models import CallStatus, check_score
from tenants.errors import NotFound

OUTCOME_FIELDS = [
    field.attname
    for field in Call._meta.concrete_fields  # noqa: SLF001 - documented by Django
    if field.attname not in {"id", "scope_id", "tenant_id"}
]


def write_intent(*, call: Call) -> None:
    """Insert an attempt that is about to be made; durable when this returns."""
    call.status = CallStatus.STARTED.value
    _insert(call)


def write_outcome(*, call: Call) -> None:
    """Close the attempt's intent, or insert where there was none. A second outcome is ignored."""
    intent = Call.objects.filter(
        id=call.id, scope_id=call.scope_id, status=CallStatus.STARTED.value
    )
    if not intent.update(**{name: getattr(call, name) for name in OUTCOME_FIELDS}):
        _insert(call)


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


def _insert(call: Call) -> None:
    """Insert the row, unless it is there. The tenant always follows from the scope."""
    call.tenant_id = selectors.tenant_of_scope(call.scope_id)  # type: ignore[assignment]
    try:
        Call.objects.bulk_create([call], ignore_conflicts=True)
    except IntegrityError as error:
        if not isinstance(error.__cause__, NotNullViolation):
            raise
    else:
        return
    # Outside the handler: the database's own message quotes the row.
    raise LLMBrokerError(f"there is no scope {call.scope_id}, or no longer")
