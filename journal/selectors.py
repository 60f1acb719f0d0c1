"""What the journal holds, by scope or by tenant."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Prefetch, Q, QuerySet

from journal.models import Call, Payload, Rating, RetentionPolicy
from journal.moments import EPOCH, earliest_id, latest_id
from journal.text import stored
from llmbroker.models import CallStatus, Rated
from tenants.caller import Caller
from tenants.context import enter_all_tenants
from tenants.errors import PermissionRefused
from tenants.roles import ADMIN


def calls_of_scope(scope_id: UUID) -> QuerySet[Call]:
    """The calls of one scope."""
    return Call.objects.filter(scope_id=scope_id)


def calls_of_tenant(tenant_id: UUID) -> QuerySet[Call]:
    """The calls of all scopes of a tenant."""
    return Call.objects.filter(tenant_id=tenant_id)


@dataclass(frozen=True)
class Reach:
    """Whose calls: of a scope; without one, of the whole tenant; with neither, everybody's."""

    tenant_id: UUID | None = None
    scope_id: UUID | None = None

    def calls(self) -> QuerySet[Call]:
        """The calls within."""
        if self.scope_id is not None:
            return calls_of_scope(self.scope_id)
        if self.tenant_id is not None:
            return calls_of_tenant(self.tenant_id)
        return calls_of_installation()

    def payloads(self) -> QuerySet[Payload]:
        """What was kept of what they said."""
        if self.scope_id is not None:
            return Payload.objects.filter(scope_id=self.scope_id)
        if self.tenant_id is not None:
            return Payload.objects.filter(tenant_id=self.tenant_id)
        return Payload.objects.all()


def reach_of(caller: Caller, level: str) -> Reach:
    """What a caller may read: the own scope, as an admin the tenant, as the operator all."""
    if level == "installation":
        _require_operator(caller)
        enter_all_tenants(f"the journal of the installation, for {caller.reach.actor}")
        return Reach()
    if level == "tenant":
        caller.require(ADMIN, "Only an admin of the tenant reads what all its scopes called.")
        return Reach(caller.tenant.id)
    return Reach(caller.tenant.id, caller.scope.id)


def _require_operator(caller: Caller) -> None:
    """A token belongs to one tenant, whoever made it: only a person's session will do."""
    if caller.token is not None or caller.user is None or not caller.user.is_superuser:
        raise PermissionRefused("Only the operator, signed in, reads what all tenants called.")


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
        calls = calls.filter(ts__gte=since, id__gte=earliest_id(since))
    if until is not None:
        calls = calls.filter(ts__lt=until, id__lt=latest_id(until))
    return calls


def policy_of(tenant_id: UUID) -> RetentionPolicy:
    """The tenant's own rule of retention, else the installation's."""
    own = RetentionPolicy.objects.filter(tenant_id=tenant_id).first()
    return own or RetentionPolicy(
        tenant_id=tenant_id,
        metadata_days=settings.JOURNAL_METADATA_DAYS,
        payload_days=settings.JOURNAL_PAYLOAD_DAYS,
    )


def kept_since(tenant_id: UUID, now: datetime) -> datetime:
    """The start of what the tenant keeps of its calls."""
    days = policy_of(tenant_id).metadata_days
    return EPOCH if days is None else now - timedelta(days=days)


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
