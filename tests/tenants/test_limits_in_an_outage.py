"""Limits while PostgreSQL is away: rates hold in Redis, money against what was left last."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from redis import Redis
from uuid_utils.compat import uuid7

from llmbroker.errors import LimitExceededError
from llmbroker.models import Usage
from llmbroker.outgoing import Outgoing, Spent
from tenants.limits.gate import LimitGate
from tenants.limits.ledger import Ledger
from tenants.limits.rates import Rates
from tenants.models import Spending
from tenants.outage import Memory
from tenants.services.limits import set_limit
from tests.tenants.limit_helpers import CONFIG, HELLO, a_cent_per_answer_token

pytestmark = pytest.mark.django_db(transaction=True)

CENTS = Decimal("0.01")


class Switched(Memory):
    """A memory of a database that a test takes away."""

    gone = False

    @property
    def away(self):
        return self.gone


@pytest.fixture
def database():
    return Switched(300)


@pytest.fixture
def process(clock, database):
    """Another process's gate, each time; all share the same Redis."""
    prefix = f"test-{uuid7()}:"

    def gate(url=settings.REDIS_URL):
        return LimitGate(
            Rates(url, prefix=prefix, clock=clock.seconds),
            Ledger(url, prefix=f"{prefix}money:", clock=clock.seconds),
            price=a_cent_per_answer_token,
            clock=clock,
            memory=database,
        )

    return gate


def outgoing(person):
    """A call that costs ten cents at its worst."""
    return Outgoing(str(uuid7()), str(person.scope.pk), CONFIG, HELLO, None, {"max_tokens": 10})


def answered(tokens):
    return Spent(billed=True, usage=Usage(5, tokens, 5 + tokens))


def budget(person, value):
    set_limit(tenant=person.tenant, kind="usd_per_day", value=Decimal(value))


def spent():
    return Spending.objects.get().spent


def test_all_processes_together_spend_no_more_than_was_left_last(process, database, alice):
    budget(alice, "0.50")
    one, other = process(), process()

    async def calls():
        await one.admit(outgoing(alice))
        database.gone = True
        for gate in (one, other, one, other):
            await gate.admit(outgoing(alice))
        with pytest.raises(LimitExceededError, match=r"has 0\.000000 left") as refusal:
            await other.admit(outgoing(alice))
        assert refusal.value.is_money

    asyncio.run(calls())


def test_what_calls_came_to_is_given_back_at_once_and_spent_when_the_database_is_back(
    process, database, alice
):
    budget(alice, "0.20")

    async def calls():
        gate = process()
        across = await gate.admit(outgoing(alice))
        database.gone = True
        within = await gate.admit(outgoing(alice))
        await gate.settle(across, answered(1))
        await gate.settle(within, answered(2))
        with pytest.raises(LimitExceededError, match=r"has 0\.070000 left"):
            await gate.admit(outgoing(alice))
        database.gone = False

    asyncio.run(calls())
    assert spent() == 0
    budget(alice, "1.00")

    async def after():
        gate = process()
        await gate.settle(await gate.admit(outgoing(alice)), answered(4))

    asyncio.run(after())
    assert spent() == 7 * CENTS


class DyingLedger(Ledger):
    """Of a process that is killed when it knows what is owed, and has not written it."""

    async def owed(self, standings):
        await super().owed(standings)
        raise RuntimeError("killed")


def test_what_is_owed_survives_a_process_that_dies_while_it_writes_it(
    process, database, clock, alice
):
    budget(alice, "1.00")
    gate = process()

    async def in_an_outage():
        await gate.admit(outgoing(alice))
        database.gone = True
        within = await gate.admit(outgoing(alice))
        await gate.settle(within, answered(3))
        database.gone = False

    asyncio.run(in_an_outage())
    dying = process()
    dying._purse._ledger.__class__ = DyingLedger
    with pytest.raises(RuntimeError, match="killed"):
        asyncio.run(dying.admit(outgoing(alice)))
    assert spent() == 0
    asyncio.run(process().admit(outgoing(alice)))
    assert spent() == 3 * CENTS


def test_what_is_owed_is_written_once_however_many_write_it(process, database, alice):
    budget(alice, "9.00")

    async def calls():
        gates = [process() for _ in range(4)]
        for round_ in (1, 2):
            await gates[0].admit(outgoing(alice))
            database.gone = True
            for gate in gates:
                await gate.settle(await gate.admit(outgoing(alice)), answered(1))
            database.gone = False
            await asyncio.gather(*(gate.admit(outgoing(alice)) for gate in gates * 3))
            assert await asyncio.to_thread(spent) == round_ * 4 * CENTS

    asyncio.run(calls())


def test_a_ledger_that_redis_has_lost_begins_anew(process, database, alice):
    budget(alice, "9.00")

    async def outage(tokens):
        gate = process()
        await gate.admit(outgoing(alice))
        database.gone = True
        await gate.settle(await gate.admit(outgoing(alice)), answered(tokens))
        database.gone = False
        await gate.admit(outgoing(alice))

    asyncio.run(outage(5))
    assert spent() == 5 * CENTS
    redis = Redis.from_url(settings.REDIS_URL)
    lost = [key for key in redis.scan_iter("test-*") if b"money" in key]
    redis.delete(*lost)
    asyncio.run(outage(2))
    assert spent() == 7 * CENTS


def test_a_budget_holds_where_nobody_knows_what_is_left(process, database, clock, alice):
    budget(alice, "100")

    async def calls():
        gate = process()
        database.gone = True
        with pytest.raises(LimitExceededError, match="cannot be known"):
            await gate.admit(outgoing(alice))
        database.gone = False
        await gate.admit(outgoing(alice))
        database.gone = True
        clock.pass_by(settings.JOURNAL_SPOOL_MAX_SECONDS + 1)
        with pytest.raises(LimitExceededError, match="cannot be known"):
            await gate.admit(outgoing(alice))

    asyncio.run(calls())


def test_with_redis_away_too_a_budget_holds(process, database, alice):
    budget(alice, "100")

    async def calls():
        gate = process("redis://127.0.0.1:1/0")
        await gate.admit(outgoing(alice))
        database.gone = True
        with pytest.raises(LimitExceededError, match="cannot be known"):
            await gate.admit(outgoing(alice))

    asyncio.run(calls())


def test_a_day_has_its_own_budget_that_is_unknown_when_it_begins_in_an_outage(
    process, database, clock, alice
):
    budget(alice, "100")

    async def calls():
        gate = process()
        clock.now = clock.now.replace(hour=23, minute=59)
        await gate.admit(outgoing(alice))
        database.gone = True
        await gate.admit(outgoing(alice))
        clock.now += timedelta(minutes=2)
        with pytest.raises(LimitExceededError, match="cannot be known"):
            await gate.admit(outgoing(alice))

    asyncio.run(calls())


def test_rates_hold(process, database, alice):
    set_limit(tenant=alice.tenant, kind="requests_per_minute", value=Decimal(2))

    async def calls():
        gate = process()
        await gate.admit(outgoing(alice))
        database.gone = True
        await gate.admit(outgoing(alice))
        with pytest.raises(LimitExceededError, match="requests per minute"):
            await process().admit(outgoing(alice))

    asyncio.run(calls())
