"""Setting limits, and holding concurrent runs to theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from django.db import transaction

from llmbroker.errors import LimitExceededError
from tenants.caller import Caller
from tenants.context import Reach, scope_active
from tenants.errors import InvalidInput
from tenants.models import AccessToken, Limit, Scope, Tenant
from tenants.services.audit import note


def set_limit(
    *,
    tenant: Tenant,
    kind: str,
    value: Decimal,
    scope: Scope | None = None,
    token: AccessToken | None = None,
) -> Limit:
    """Set a limit, or change the one there is; it holds in every process within a second.

    Raises InvalidInput.
    """
    if scope is not None and token is not None:
        raise InvalidInput("A limit is a scope's or a token's.", param="token")
    if kind not in Limit.MONEY and value != int(value):
        raise InvalidInput("This limit is a whole number.", param="value")
    if token is not None and kind in Limit.RUNS:
        raise InvalidInput("Runs count for their scope: limit that.", param="kind")
    with transaction.atomic():
        limit, _ = Limit.objects.update_or_create(
            tenant=tenant, scope=scope, token=token, kind=kind, defaults={"value": value}
        )
        note("limit.set", limit, tenant_id=tenant.pk, changes={"scope": scope, "token": token})
    return limit


@transaction.atomic
def delete_limit(*, limit: Limit) -> None:
    """Take a limit away, with what was counted under it."""
    note("limit.deleted", limit, tenant_id=limit.tenant_id)
    limit.delete()


def locked_run_limits(*, caller: Caller) -> list[Limit]:
    """The limits of runs at once that bind ``caller``, within the transaction that will store one.

    Their rows stay locked to its end, so that two requests at once are counted apart.
    """
    limits = Limit.objects.select_for_update().filter(
        tenant=caller.tenant, kind=Limit.Kind.CONCURRENT_RUNS
    )
    ours = (None, caller.scope.pk)
    return [limit for limit in limits.order_by("pk") if limit.scope_id in ours]


def refuse_one_too_many(
    limits: Sequence[Limit], *, caller: Caller, active: Callable[[Scope | None], int]
) -> None:
    """Raise LimitExceededError where another run is beyond one of these limits.

    ``active`` counts the runs of a scope (None: of the tenant) that are not over.
    """
    for limit in limits:
        with scope_active(Reach(caller.tenant.pk)):  # a tenant's limit counts everybody's runs
            count = active(caller.scope if limit.scope_id else None)
        if count >= limit.value:
            raise LimitExceededError(
                f"The {limit.of}'s limit of {int(limit.value)} concurrent runs is reached.",
                name=limit.kind,
                of=limit.of,
                limit=str(int(limit.value)),
                remaining="0",
                reset_after=None,
            )
