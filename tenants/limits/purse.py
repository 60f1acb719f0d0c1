"""Money for one call: reserved in PostgreSQL, and in the ledger while that is away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from uuid import UUID

from django.conf import settings

from llmbroker.errors import LimitExceededError
from tenants.context import Reach, scope_active
from tenants.limits.accounts import Account
from tenants.limits.ledger import Ledger, Standing
from tenants.limits.rules import period_of, seconds_to_next
from tenants.models import Limit
from tenants.outage import Memory
from tenants.services.money import NoRoom, Reserved, reserve_money, settle_money, write_off

ASK_AGAIN = 5.0
"""Seconds after which a budget that nobody knows may be known again."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one call has reserved; without ``spending_ids`` in the ledger alone."""

    reach: Reach
    call_id: str
    amount: Decimal
    standings: Sequence[Standing]
    spending_ids: Sequence[UUID] = ()
    written: Sequence[Account] = ()


class Purse:
    """Reserves and spends under money limits."""

    def __init__(self, ledger: Ledger, memory: Memory, clock: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._memory = memory
        self._clock = clock

    async def reserve(
        self, reach: Reach, limits: Sequence[Limit], *, call_id: str, amount: Decimal
    ) -> Held:
        """Reserve the worst that a call may cost. Raises LimitExceededError."""
        now = self._clock()
        standings = [(limit.pk, period_of(limit, now)) for limit in limits]
        done = await self._memory.attempt(partial(_reserve, reach, limits, call_id, amount, now))
        if done is not None:
            (reserved,) = done
            if isinstance(reserved, NoRoom):
                raise spent(reserved.limit, reserved.remaining, amount, now)
            await self._ledger.note(standings, [(each.left, each.written) for each in reserved])
            ids = [each.spending_id for each in reserved]
            held = Held(reach, call_id, amount, standings, ids, [each.written for each in reserved])
            await self._write_what_is_owed(held)
            return held
        refused = await self._ledger.reserve(
            standings,
            call_id=call_id,
            amount=amount,
            lasts=settings.BROKER_RESERVATION_SECONDS,
            known_for=settings.JOURNAL_SPOOL_MAX_SECONDS,
        )
        if refused is not None:
            limit, left = limits[refused[0]], refused[1]
            raise unknown(limit) if left is None else spent(limit, left, amount, now)
        return Held(reach, call_id, amount, standings)

    async def settle(self, held: Held, amount: Decimal | None) -> None:
        """Spend what the call came to; None: all that was reserved."""
        owed = held.amount if amount is None else amount
        if held.spending_ids and await self._memory.attempt(partial(_settle, held, owed)):
            return
        await self._ledger.owe(held.standings, call_id=held.call_id, amount=owed)
        await self._write_what_is_owed(held)

    async def aclose(self) -> None:
        """Close the connections to Redis."""
        await self._ledger.aclose()

    async def _write_what_is_owed(self, held: Held) -> None:
        if self._memory.away:
            return
        written = held.written or [Account() for _ in held.standings]
        owed = await self._ledger.owed(held.standings)
        for standing, known, account in zip(held.standings, written, owed, strict=True):
            if account.total and account != known:
                await self._memory.attempt(partial(_write_off, held.reach, standing, account))


def refusal(
    limit: Limit, why: str, *, remaining: str = "0", reset_after: float | None = None
) -> LimitExceededError:
    """A money limit does not let a call through."""
    return LimitExceededError(
        why,
        name=limit.kind,
        of=limit.of,
        limit=f"{limit.value:f}",
        remaining=remaining,
        reset_after=reset_after,
        is_money=True,
    )


def spent(limit: Limit, left: Decimal, amount: Decimal, now: datetime) -> LimitExceededError:
    """The limit has no room for the call."""
    return refusal(
        limit,
        f"The {limit.of}'s budget of {limit.value:.2f} {limit.get_kind_display()} has"
        f" {left:.6f} left, calls under way counted at their worst; this call may cost"
        f" {amount:.6f}.",
        remaining=f"{left:f}",
        reset_after=seconds_to_next(limit, now),
    )


def unknown(limit: Limit) -> LimitExceededError:
    """Nobody knows what is left of the limit: it holds."""
    return refusal(
        limit,
        f"What is left of the {limit.of}'s budget of {limit.value:.2f}"
        f" {limit.get_kind_display()} cannot be known while the database is away.",
        reset_after=ASK_AGAIN,
    )


def _reserve(
    reach: Reach, limits: Sequence[Limit], call_id: str, amount: Decimal, now: datetime
) -> list[Reserved] | NoRoom:
    lasts = timedelta(seconds=settings.BROKER_RESERVATION_SECONDS)
    with scope_active(reach):
        return reserve_money(
            limits=limits, call_id=UUID(call_id), amount=amount, now=now, lasts=lasts
        )


def _settle(held: Held, amount: Decimal) -> None:
    with scope_active(held.reach):
        settle_money(spending_ids=held.spending_ids, call_id=UUID(held.call_id), amount=amount)


def _write_off(reach: Reach, standing: Standing, account: Account) -> None:
    limit_id, period = standing
    with scope_active(reach):
        write_off(limit_id=limit_id, period=period, account=account)
