"""What the journal holds, by scope or by tenant."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from journal.models import Call, Rating
from journal.text import stored
from llmbroker.models import CallStatus, Rated
from tenants.caller import Caller
from tenants.roles import ADMIN

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MILLISECOND = 2**48 - 1

# How far the clock that made an id may lie from the ``ts`` beside it, in milliseconds.
CLOCK_MARGIN = 60 * 60 * 1000


def calls_of_scope(scope_id: UUID) -> QuerySet[Call]:
    """The calls of one scope."""
    return Call.objects.filter(scope_id=scope_id)


def calls_of_tenant(tenant_id: UUID) -> QuerySet[Call]:
    """The calls of all scopes of a tenant."""
    return Call.objects.filter(tenant_id=tenant_id)


def calls_in_reach(caller: Caller, level: str) -> QuerySet[Call]:
    """The calls that a caller may read: of the own scope, or at level ``tenant`` of them all."""
    if level != "tenant":
        return calls_of_scope(caller.scope.id)
    caller.require(ADMIN, "Only an admin of the tenant reads what all its scopes called.")
    return calls_of_tenant(caller.tenant.id)


def calls_of_installation() -> QuerySet[Call]:
    """Everybody's calls: for the operator's own code, never for a tenant."""
    return Call.objects.all()


def narrowed(
    calls: QuerySet[Call],
    *,
    id: UUID | None = None,  # noqa: A002 - the column's name
    operation: str | None = None,
    trace_id: str | None = None,
    run: str | None = None,
    model: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[Call]:
    """The calls that match everything given; ``model`` is the LLM's name or what it was asked for.

    The time is a half-open range: ``since`` belongs to it, ``until`` does not.
    """
    exact = {"operation": operation, "trace_id": trace_id, "run": run, "status": status}
    names = {name: stored(text) for name, text in exact.items() if text is not None}
    calls = calls.filter(**names)
    if id is not None:
        calls = calls.filter(id=id)
    if model is not None:
        calls = calls.filter(Q(llm_name=stored(model)) | Q(model=stored(model)))
    if since is not None:
        calls = calls.filter(ts__gte=since, id__gte=_id_at(since, -CLOCK_MARGIN))
    if until is not None:
        calls = calls.filter(ts__lt=until, id__lt=_id_at(until, CLOCK_MARGIN))
    return calls


def with_score(calls: QuerySet[Call]) -> QuerySet[Call]:
    """The same calls, with the newest rating of each read by one more query.

    As a sub-select of the first query, it made PostgreSQL careless about that query's index.
    """
    newest = Rating.objects.order_by("call_id", "-id").distinct("call_id")
    return calls.prefetch_related(Prefetch("ratings", newest))


def ratings_of_scope(scope_id: UUID, *, newest: int) -> list[Rated]:
    """The newest rating of each rated call among the scope's ``newest`` calls."""
    calls = Call.objects.filter(scope_id=scope_id).order_by("-id").values("id")[:newest]
    ratings = (
        Rating.objects.filter(scope_id=scope_id, call_id__in=calls, call__scope_id=scope_id)
        .order_by("call_id", "-id")
        .distinct("call_id")
        .values_list("call__operation", "call__llm_name", "score")
    )
    return [Rated(*each) for each in ratings]


def answered(calls: QuerySet[Call]) -> QuerySet[Call]:
    """The calls that brought an answer: those that can be rated."""
    return calls.filter(status=CallStatus.OK.value)


def _id_at(moment: datetime, margin: int) -> UUID:
    """No UUIDv7 made ``margin`` milliseconds after ``moment``, or later, is smaller than this."""
    milliseconds = (moment - EPOCH) // timedelta(milliseconds=1) + margin
    return UUID(int=min(max(milliseconds, 0), LAST_MILLISECOND) << 80)
