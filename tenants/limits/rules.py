"""Which limits hold for a call: its tenant's, its scope's, its token's."""

from __future__ import annotations

from datetime import date, datetime

from django.conf import settings
from django.db.models import Q

from tenants.context import Reach
from tenants.limits.rates import Rule
from tenants.models import Limit

MINUTE = 60


def limits_of(reach: Reach) -> list[Limit]:
    """The limits that hold for calls of a scope, made with its token if there is one.

    In the order of their ids, in which they are locked.
    """
    whose = Q(scope=None, token=None) | Q(scope=reach.scope_id, token=None)
    if reach.token_id is not None:
        whose |= Q(token=reach.token_id)
    return list(Limit.objects.filter(whose, tenant=reach.tenant_id).order_by("pk"))


def rule_of(limit: Limit, *, tokens: int) -> Rule | None:
    """The limit as Redis keeps it; None for money and runs, which PostgreSQL keeps."""
    value, key = int(limit.value), str(limit.pk)
    if limit.kind == Limit.Kind.REQUESTS_PER_MINUTE:
        return Rule(key, "requests", value, MINUTE)
    if limit.kind == Limit.Kind.TOKENS_PER_MINUTE:
        return Rule(key, "tokens", value, MINUTE, tokens)
    if limit.kind == Limit.Kind.CONCURRENT_CALLS:
        return Rule(key, "calls", value, settings.BROKER_RESERVATION_SECONDS)
    return None


def period_of(limit: Limit, now: datetime) -> date:
    """The first day of the money limit's period, in UTC."""
    today = now.date()
    return today.replace(day=1) if limit.kind == Limit.Kind.USD_PER_MONTH else today


def seconds_to_next(limit: Limit, now: datetime) -> float:
    """How long the money limit's period still lasts."""
    start = period_of(limit, now)
    if limit.kind == Limit.Kind.USD_PER_MONTH:
        following = date(start.year + start.month // 12, start.month % 12 + 1, 1)
    else:
        following = date.fromordinal(start.toordinal() + 1)
    midnight = datetime(following.year, following.month, following.day, tzinfo=now.tzinfo)
    return (midnight - now).total_seconds()
