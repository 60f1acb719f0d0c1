"""The engine's gate: every request to a provider passes here, whoever makes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from llmbroker.errors import LimitExceededError
from llmbroker.models import LLMConfig, Usage
from llmbroker.outgoing import Admission, Outgoing, Spent
from llmbroker.prices import cost_of
from tenants.context import Reach, current, scope_active
from tenants.database import in_thread, in_thread_shared
from tenants.limits.key_uses import KeyUses
from tenants.limits.rates import Rates, Refusal, Rule
from tenants.limits.rules import limits_of, rule_of, seconds_to_next
from tenants.models import Limit
from tenants.selectors import reach_of, scope_of
from tenants.services.money import NoRoom, reserve_money, settle_money

KNOWN_FOR = 0.5
"""Seconds that limits are remembered: what is changed holds in every process within a second."""

REMEMBERED = 10_000

Pricer = Callable[[LLMConfig, Usage], Decimal | None]


@dataclass(frozen=True, slots=True)
class Ticket:
    """What one request has taken."""

    reach: Reach
    call_id: str
    config: LLMConfig
    rules: Sequence[Rule]
    spending_ids: Sequence[UUID]


class LimitGate:
    """llmbroker.ports.Gate over the limits of tenants, scopes and tokens."""

    def __init__(
        self,
        rates: Rates,
        *,
        price: Pricer = cost_of,
        clock: Callable[[], datetime] = timezone.now,
    ) -> None:
        self._rates = rates
        self._price = price
        self._clock = clock
        self._uses = KeyUses(clock)
        self._places: dict[str, Reach] = {}
        self._known: dict[tuple[str, UUID | None], tuple[float, list[Limit]]] = {}

    async def admit(self, outgoing: Outgoing) -> Admission | None:
        """See Gate. The installation's own calls have no limits."""
        if outgoing.scope is None:
            return None
        await self._uses.note(outgoing.key_id)
        reach, limits = await self._limits(outgoing.scope)
        if not limits:
            return None
        usage = _worst(outgoing)
        tokens = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        found = [(limit, rule_of(limit, tokens=tokens)) for limit in limits]
        rules = [rule for _, rule in found if rule is not None]
        refused = await self._rates.take(outgoing.call_id, rules) if rules else None
        if refused is not None:
            raise _too_much(next(limit for limit, rule in found if rule is refused.rule), refused)
        money = [limit for limit in limits if limit.kind in Limit.MONEY]
        reserved: list[UUID] = []
        if money:
            try:
                reserved = await in_thread(self._reserve, reach, money, outgoing, usage)
            except BaseException:
                await self._rates.settle(outgoing.call_id, rules, [0] * len(rules))
                raise
        ticket = Ticket(reach, outgoing.call_id, outgoing.config, rules, reserved)
        return Admission(ticket, answer_cap=settings.BROKER_UNCAPPED_ANSWER_TOKENS)

    async def settle(self, admission: Admission, spent: Spent) -> None:
        """See Gate."""
        ticket = admission.ticket
        if not isinstance(ticket, Ticket):
            raise TypeError("this admission is another gate's")
        if ticket.rules:
            costs = [_final_cost(rule, spent) for rule in ticket.rules]
            await self._rates.settle(ticket.call_id, ticket.rules, costs)
        if ticket.spending_ids:
            await in_thread(self._settle, ticket, spent)

    async def aclose(self) -> None:
        """Close the connections to Redis."""
        await self._rates.aclose()

    async def _limits(self, scope: str) -> tuple[Reach, list[Limit]]:
        where = current()
        token_id = where.token_id if isinstance(where, Reach) else None
        place = self._places.get(scope)
        if place is None:  # a scope never changes its tenant
            place = self._places[scope] = await in_thread_shared(_place_of, scope)
        reach = Reach(place.tenant_id, place.scope_id, token_id)
        known = self._known.get((scope, token_id))
        if known is None or known[0] < time.monotonic():
            if len(self._known) > REMEMBERED:
                self._known.clear()
            known = (time.monotonic() + KNOWN_FOR, await in_thread_shared(_read, reach))
            self._known[scope, token_id] = known
        return reach, known[1]

    def _reserve(
        self, reach: Reach, limits: list[Limit], outgoing: Outgoing, usage: Usage
    ) -> list[UUID]:
        amount, now = self._price(outgoing.config, usage), self._clock()
        if amount is None:
            raise _no_price(limits[0], outgoing.config)
        lasts = timedelta(seconds=settings.BROKER_RESERVATION_SECONDS)
        with scope_active(reach):
            reserved = reserve_money(
                limits=limits, call_id=UUID(outgoing.call_id), amount=amount, now=now, lasts=lasts
            )
        if isinstance(reserved, NoRoom):
            raise _spent(reserved, amount, now)
        return reserved

    def _settle(self, ticket: Ticket, spent: Spent) -> None:
        amount: Decimal | None = Decimal(0)
        if spent.billed:
            usage = spent.usage
            amount = None if usage is None else self._price(ticket.config, usage)
        with scope_active(ticket.reach):
            settle_money(
                spending_ids=ticket.spending_ids, call_id=UUID(ticket.call_id), amount=amount
            )


def _place_of(scope: str) -> Reach:
    with scope_active(None):
        return reach_of(scope_of(scope))


def _read(reach: Reach) -> list[Limit]:
    with scope_active(reach):
        return limits_of(reach)


def _worst(outgoing: Outgoing) -> Usage:
    answer = outgoing.answer_cap or settings.BROKER_UNCAPPED_ANSWER_TOKENS
    return Usage(
        prompt_tokens=outgoing.prompt_tokens(), completion_tokens=answer * outgoing.choices
    )


def _final_cost(rule: Rule, spent: Spent) -> int:
    if rule.measures == "requests":
        return rule.cost
    if rule.measures == "calls" or not spent.billed:
        return 0
    known = spent.usage.total_tokens if spent.usage is not None else None
    return rule.cost if known is None else known


def _too_much(limit: Limit, refused: Refusal) -> LimitExceededError:
    wait = (
        "the request alone is larger than that"
        if refused.reset_after is None
        else f"there is more in {refused.reset_after:.1f} s"
    )
    return LimitExceededError(
        f"The {limit.of}'s limit of {int(limit.value)} {limit.get_kind_display()} is reached:"
        f" {refused.remaining} left, {wait}.",
        name=limit.kind,
        of=limit.of,
        limit=str(int(limit.value)),
        remaining=str(refused.remaining),
        reset_after=refused.reset_after,
    )


def _spent(refused: NoRoom, amount: Decimal, now: datetime) -> LimitExceededError:
    limit, left = refused.limit, refused.remaining
    return LimitExceededError(
        f"The {limit.of}'s budget of {limit.value:.2f} {limit.get_kind_display()} has"
        f" {left:.6f} left, calls under way counted at their worst; this call may cost"
        f" {amount:.6f}.",
        name=limit.kind,
        of=limit.of,
        limit=f"{limit.value:f}",
        remaining=f"{left:f}",
        reset_after=seconds_to_next(limit, now),
        is_money=True,
    )


def _no_price(limit: Limit, config: LLMConfig) -> LimitExceededError:
    return LimitExceededError(
        f"{config.name} has no known price, so that a budget cannot hold it: the {limit.of} has"
        " one.",
        name=limit.kind,
        of=limit.of,
        limit=f"{limit.value:f}",
        remaining="0",
        reset_after=None,
        is_money=True,
    )
