"""Money limits: reserved at its worst before a call, spent as it was after it.

Each takes the period's row lock, so that of any number of calls at once none sees room that
another has taken. Several limits are locked in the order of their ids, before a call and after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, Sum

from tenants.limits.accounts import Account
from tenants.limits.rules import period_of
from tenants.models import Limit, Reservation, Spending


@dataclass(frozen=True, slots=True)
class NoRoom:
    """The limit that refuses, and what is left of it."""

    limit: Limit
    remaining: Decimal


@dataclass(frozen=True, slots=True)
class Reserved:
    """A limit's row of this period, what the reservation leaves of it, and what it counts of what
    was spent elsewhere."""

    spending_id: UUID
    left: Decimal
    written: Account


def reserve_money(
    *,
    limits: Sequence[Limit],
    call_id: UUID,
    amount: Decimal,
    now: datetime,
    lasts: timedelta,
) -> list[Reserved] | NoRoom:
    """Reserve ``amount`` under all ``limits``, or nothing; what is left of each."""
    reserved = []
    with transaction.atomic():
        rows = [_locked(limit, now) for limit in limits]
        for limit, row in zip(limits, rows, strict=True):
            left = limit.value - row.spent - _reserved(row, now)
            if amount > left:
                return NoRoom(limit, max(left, Decimal(0)))
            written = Account(row.ledger, row.ledger_total)
            reserved.append(Reserved(row.pk, left - amount, written))
        Reservation.objects.bulk_create(
            Reservation(
                tenant_id=row.tenant_id,
                spending=row,
                call_id=call_id,
                amount=amount,
                expires_at=now + lasts,
            )
            for row in rows
        )
    return reserved


def settle_money(*, spending_ids: Sequence[UUID], call_id: UUID, amount: Decimal) -> None:
    """Spend what the call came to, and end its reservations, which may have run out by now."""
    with transaction.atomic():
        rows = Spending.objects.select_for_update().filter(pk__in=spending_ids)
        for row in rows.order_by("limit_id"):
            row.reservations.filter(call_id=call_id).delete()
            Spending.objects.filter(pk=row.pk).update(spent=F("spent") + amount)


def write_off(*, limit_id: UUID, period: date, account: Account) -> None:
    """Spend what an account of a ledger has come to, as far as that was not done before."""
    with transaction.atomic():
        row = Spending.objects.select_for_update().filter(limit=limit_id, period=period).first()
        if row is None:
            return
        before = row.ledger_total if row.ledger == account.ledger else Decimal(0)
        if account.total > before:
            Spending.objects.filter(pk=row.pk).update(
                spent=F("spent") + account.total - before,
                ledger=account.ledger,
                ledger_total=account.total,
            )


def remaining_of(limits: Sequence[Limit], now: datetime) -> dict[UUID, Decimal]:
    """What may still be spent in each limit's period, calls under way counted at their worst."""
    periods = {limit.pk: period_of(limit, now) for limit in limits}
    alive = Sum("reservations__amount", filter=Q(reservations__expires_at__gt=now), default=0)
    rows = Spending.objects.filter(limit__in=periods, period__in=set(periods.values()))
    used = {
        limit_id: spent + held
        for limit_id, period, spent, held in rows.annotate(held=alive).values_list(
            "limit_id", "period", "spent", "held"
        )
        if period == periods[limit_id]
    }
    nothing = Decimal(0)
    return {limit.pk: max(limit.value - used.get(limit.pk, nothing), nothing) for limit in limits}


def _locked(limit: Limit, now: datetime) -> Spending:
    place = {"limit": limit, "period": period_of(limit, now), "tenant_id": limit.tenant_id}
    Spending.objects.bulk_create([Spending(**place)], ignore_conflicts=True)
    return Spending.objects.select_for_update().get(**place)


def _reserved(row: Spending, now: datetime) -> Decimal:
    """By calls that are alive: those that never came back are forgotten here."""
    row.reservations.filter(expires_at__lte=now).delete()
    total: Decimal | None = row.reservations.aggregate(sum=Sum("amount"))["sum"]
    return total or Decimal(0)
