"""A budget under a crowd: however many call at once, it is never passed, and all is usable."""

import asyncio
from collections import Counter
from contextlib import contextmanager
from random import Random
from threading import Event, Thread

import pytest
from django.conf import settings
from django.db import connection

from llmbroker.errors import LimitExceededError
from llmbroker.outgoing import Spent
from tenants.context import Reach, scope_active
from tenants.limits.gate import LimitGate
from tenants.limits.rates import Rates
from tenants.models import Reservation, Spending
from tests.tenants.limit_helpers import (
    CENT,
    Clock,
    a_cent_per_answer_token,
    answered,
    ledger,
    limited,
    outgoing,
)

pytestmark = pytest.mark.django_db(transaction=True)


class Crowd:
    """Many callers in several event loops with gates of their own, as processes have them."""

    def __init__(self, scope):
        self.scope = scope
        self.clock = Clock()
        self.done = Counter()
        self.errors = []

    def gate(self):
        rates = Rates(settings.REDIS_URL)
        return LimitGate(rates, ledger(), price=a_cent_per_answer_token, clock=self.clock)

    async def one(self, gate, dice):
        call = outgoing(self.scope, cap=dice.randint(1, 10))
        try:
            admission = await gate.admit(call)
        except LimitExceededError:
            self.done["refused"] += 1
            return
        await asyncio.sleep(dice.random() / 50)
        used = answered(dice.randint(1, call.answer_cap))
        await gate.settle(admission, dice.choice([used, used, Spent(billed=False)]))
        self.done["admitted"] += 1

    async def call(self, seed, count):
        gate, dice = self.gate(), Random(seed)
        await asyncio.gather(*(self.one(gate, dice) for _ in range(count)))
        await gate.aclose()

    def work(self, seed, count):
        try:
            asyncio.run(self.call(seed, count))
        except BaseException as error:
            self.errors.append(error)
            raise

    def rush(self, loops, count):
        threads = [Thread(target=self.work, args=[seed, count]) for seed in range(loops)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.errors

    async def use_up(self, cents):
        gate = self.gate()
        for _ in range(cents):
            await gate.settle(await gate.admit(outgoing(self.scope, cap=1)), answered(1))
        with pytest.raises(LimitExceededError):
            await gate.admit(outgoing(self.scope, cap=1))
        await gate.aclose()


@contextmanager
def watched(tenant, seen):
    """Note again and again what is spent and reserved together."""
    stop = Event()

    def watch():
        with scope_active(Reach(tenant.pk)), connection.cursor() as cursor:
            while not stop.wait(0.005):
                cursor.execute(
                    "SELECT coalesce(sum(spent), 0) + (SELECT coalesce(sum(amount), 0)"
                    " FROM tenants_reservation) FROM tenants_spending"
                )
                seen.append(cursor.fetchone()[0])
        connection.close()

    watching = Thread(target=watch)
    watching.start()
    yield
    stop.set()
    watching.join()


def test_five_hundred_calls_at_once_never_pass_a_budget_of_five(alice):
    limit = limited(alice.tenant, "usd_per_day", "5.00")
    crowd, seen = Crowd(alice.scope), []
    with watched(alice.tenant, seen):
        crowd.rush(4, 125)
    assert max(seen) <= 5
    assert crowd.done.total() == 500
    assert not Reservation.objects.exists()
    spent = Spending.objects.get(limit=limit).spent
    assert 0 < spent <= 5
    asyncio.run(crowd.use_up(int((5 - spent) / CENT)))
    assert Spending.objects.get(limit=limit).spent == 5
