"""The engine's gate: every request to a provider passes here, whoever makes it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from llmbroker.models import LLMConfig, Usage
from llmbroker.outgoing import Admission, Outgoing, Spent
from llmbroker.prices import cost_of
from tenants.context import Reach, current, scope_active
from tenants.database import in_thread_shared
from tenants.limits.key_uses import KeyUses
from tenants.limits.ledger import Ledger
from tenants.limits.purse import Held, Purse, refusal
from tenants.limits.rates import Rates, Rule
from tenants.limits.rules import limits_of, rule_of
from tenants.limits.weighing import final_cost, too_much, worst
from tenants.models import Limit
from tenants.outage import Memory, process_memory
from tenants.selectors import reach_of, scope_of

KNOWN_FOR = 0.5
"""Seconds that limits are remembered: what is changed holds in every process within a second."""

REMEMBERED = 10_000

Pricer = Callable[[LLMConfig, Usage], Decimal | None]


@dataclass(frozen=True, slots=True)
class Ticket:
    """What one request has taken."""

    call_id: str
    config: LLMConfig
    rules: Sequence[Rule]
    held: Held | None


class LimitGate:
    """llmbroker.ports.Gate over the limits of tenants, scopes and tokens."""

    def __init__(
        self,
        rates: Rates,
        ledger: Ledger,
        *,
        price: Pricer = cost_of,
        clock: Callable[[], datetime] = timezone.now,
        memory: Memory | None = None,
    ) -> None:
        """``memory`` holds limits while the database is away; the process's own unless given."""
        self._rates = rates
        self._price = price
        self._memory = memory or process_memory()
        self._purse = Purse(ledger, self._memory, clock)
        self._uses = KeyUses(self._memory, clock)
        self._leaving: set[asyncio.Future[None]] = set()
        self._known: dict[tuple[str, UUID | None], tuple[float, Reach, list[Limit]]] = {}

    async def admit(self, outgoing: Outgoing) -> Admission | None:
        """See Gate. The installation's own calls have no limits.

        A caller that goes away meanwhile is let in to the end, and then out again: what is
        being taken in a thread or in Redis can be given back only once it is known.
        """
        if outgoing.scope is None:
            return None
        entering = asyncio.ensure_future(self._enter(outgoing, outgoing.scope))
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError:
            self._see_out(self._turn_back(entering))
            raise

    async def _enter(self, outgoing: Outgoing, scope: str) -> Admission | None:
        await self._uses.note(outgoing.key_id)
        reach, limits = await self._limits(scope)
        if not limits:
            return None
        usage = worst(outgoing)
        tokens = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        found = [(limit, rule_of(limit, tokens=tokens)) for limit in limits]
        rules = [rule for _, rule in found if rule is not None]
        refused = await self._rates.take(outgoing.call_id, rules) if rules else None
        if refused is not None:
            raise too_much(next(limit for limit, rule in found if rule is refused.rule), refused)
        money = [limit for limit in limits if limit.kind in Limit.MONEY]
        held = None
        if money:
            try:
                amount = self._priced(money[0], outgoing.config, usage)
                held = await self._purse.reserve(
                    reach, money, call_id=outgoing.call_id, amount=amount
                )
            except BaseException:
                await self._rates.settle(outgoing.call_id, rules, [0] * len(rules))
                raise
        ticket = Ticket(outgoing.call_id, outgoing.config, rules, held)
        return Admission(ticket, answer_cap=settings.BROKER_UNCAPPED_ANSWER_TOKENS)

    async def _turn_back(self, entering: asyncio.Future[Admission | None]) -> None:
        await asyncio.wait([entering])
        if entering.cancelled() or entering.exception() is not None:
            return
        admission = entering.result()
        if admission is not None:
            await self._settle(admission, Spent(billed=False))

    def _see_out(self, leaving: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
        """Do it to the end, whoever still waits for it."""
        task = asyncio.ensure_future(leaving)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def settle(self, admission: Admission, spent: Spent) -> None:
        """See Gate. What was spent is counted also if the caller goes away meanwhile."""
        await asyncio.shield(self._see_out(self._settle(admission, spent)))

    async def _settle(self, admission: Admission, spent: Spent) -> None:
        ticket = admission.ticket
        if not isinstance(ticket, Ticket):
            raise TypeError("this admission is another gate's")
        if ticket.rules:
            costs = [final_cost(rule, spent) for rule in ticket.rules]
            await self._rates.settle(ticket.call_id, ticket.rules, costs)
        if ticket.held is not None:
            await self._purse.settle(ticket.held, self._amount(ticket.config, spent))

    async def aclose(self) -> None:
        """Let out those that are leaving, and close the connections to Redis."""
        here = asyncio.get_running_loop()
        leaving = [each for each in self._leaving if each.get_loop() is here]
        await asyncio.gather(*leaving, return_exceptions=True)
        await self._rates.aclose()
        await self._purse.aclose()

    async def _limits(self, scope: str) -> tuple[Reach, list[Limit]]:
        where = current()
        token_id = where.token_id if isinstance(where, Reach) else None
        known = self._known.get((scope, token_id))
        if known is None or known[0] < time.monotonic():
            question = ("limits", scope, token_id)
            found = await self._memory.ask(
                question, lambda: in_thread_shared(_read, scope, token_id)
            )
            if len(self._known) > REMEMBERED:
                self._known.clear()
            known = self._known[scope, token_id] = (time.monotonic() + KNOWN_FOR, *found)
        return known[1:]

    def _priced(self, limit: Limit, config: LLMConfig, usage: Usage) -> Decimal:
        amount = self._price(config, usage)
        if amount is None:
            raise refusal(
                limit,
                f"{config.name} has no known price, so that a budget cannot hold it: the"
                f" {limit.of} has one.",
            )
        return amount

    def _amount(self, config: LLMConfig, spent: Spent) -> Decimal | None:
        """What a call came to; None if nobody knows, or the provider left a count out."""
        if not spent.billed:
            return Decimal(0)
        usage = spent.usage
        if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        return self._price(config, usage)


def _read(scope: str, token_id: UUID | None) -> tuple[Reach, list[Limit]]:
    with scope_active(None):
        place = reach_of(scope_of(scope))
    reach = Reach(place.tenant_id, place.scope_id, token_id)
    with scope_active(reach):
        return reach, limits_of(reach)
