"""Where a caller stands with the limits that hold for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings

from tenants.limits.rates import Rates
from tenants.limits.rules import rule_of, seconds_to_next
from tenants.models import Limit
from tenants.services.money import remaining_of


def standings(limits: list[Limit], *, now: datetime) -> Iterator[dict[str, Any]]:
    """For each limit its name, whose it is, what is left, and in how long all is free again."""
    rules = [rule for limit in limits if (rule := rule_of(limit, tokens=0))]
    taken = async_to_sync(_taken)(rules) if rules else {}
    left = remaining_of([limit for limit in limits if limit.kind in Limit.MONEY], now)
    for limit in limits:
        remaining, reset = f"{limit.value:f}", None
        if limit.pk in left:
            remaining, reset = f"{left[limit.pk]:f}", seconds_to_next(limit, now)
        elif str(limit.pk) in taken:
            used, reset = taken[str(limit.pk)]
            remaining = str(max(int(limit.value) - used, 0))
        yield {
            "id": str(limit.pk),
            "object": "limit",
            "name": limit.kind,
            "of": limit.of,
            "scope": limit.scope_id and str(limit.scope_id),
            "token": limit.token_id and str(limit.token_id),
            "limit": f"{limit.value.normalize():f}",
            "remaining": remaining,
            "reset_after": reset,
        }


async def _taken(rules: list[Any]) -> dict[str, tuple[int, float]]:
    rates = Rates(settings.REDIS_URL)
    try:
        found = await rates.standing(rules)
    finally:
        await rates.aclose()
    return {rule.key: each for rule, each in zip(rules, found, strict=True)}
