"""Ways round a limit that callers, providers and clocks could try: each is counted all the same."""

import asyncio
from contextlib import suppress
from decimal import Decimal

import pytest
from django.conf import settings

from llmbroker import AsyncBroker, InMemoryRegistry, InMemoryStore, LLMConfig
from llmbroker.errors import LimitExceededError
from llmbroker.models import Usage
from llmbroker.outgoing import Spent
from llmbroker.prices import cost_of, price_of
from tenants.models import Reservation, Spending
from tests.support.model_server import ModelServer, say
from tests.tenants.limit_helpers import (
    HELLO,
    answered,
    limited,
    outgoing,
)

pytestmark = pytest.mark.django_db(transaction=True)

GPT = LLMConfig("gpt", "https://api.openai.com/v1", "gpt-4o", "A_KEY")
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
CAP = settings.BROKER_UNCAPPED_ANSWER_TOKENS


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server


def broker_of(gate, model, **config):
    registry = InMemoryRegistry(
        [LLMConfig("tested", model.base_url, "test-model", "MODEL_KEY", **config)]
    )
    return AsyncBroker(registry, secrets={"MODEL_KEY": "k" * 20}, store=InMemoryStore(), gate=gate)


EVASIONS = [
    {"max_completion_tokens": 1, "max_tokens": 100_000},
    {"max_completion_tokens": "100000"},
    {"max_completion_tokens": -1},
    {"max_tokens": True, "n": 100_000.0},
    {"n": "100000"},
    {"best_of": 100_000},
]


@pytest.mark.parametrize("params", EVASIONS, ids=str)
def test_what_is_sent_is_never_more_than_what_was_reserved(gate, alice, model, params):
    limited(alice.tenant, "usd_per_day", CAP * Decimal("0.01") + 1)
    model.script(say("hello"))

    async def call():
        async with broker_of(gate, model) as broker:
            with suppress(Exception):
                await broker.for_scope(str(alice.scope.pk)).chat(HELLO, params=params)

    asyncio.run(call())
    for request in model.requests:
        sent = request.body
        assert type(sent["max_tokens"]) is int
        assert 0 < sent["max_tokens"] <= CAP
        assert "max_completion_tokens" not in sent
        assert sent.keys().isdisjoint({"n", "best_of"})


def test_the_models_own_parameters_are_reserved_for_like_the_callers(gate, alice, model):
    limited(alice.tenant, "usd_per_day", CAP * Decimal("0.01") + 1)
    model.script(say("hello"))

    async def call():
        async with broker_of(gate, model, tool_params={"n": 50}) as broker:
            with suppress(Exception):
                await broker.for_scope(str(alice.scope.pk)).chat(HELLO, tools=TOOLS)

    asyncio.run(call())
    assert model.requests == []


def test_text_that_is_no_unicode_passes_a_limit_as_it_passes_without_one(gate, alice):
    limited(alice.tenant, "tokens_per_minute", 100_000)
    call = outgoing(alice.scope)
    call.messages[:] = [{"role": "user", "content": "half a pair: \ud800"}]
    try:
        assert asyncio.run(gate.admit(call)) is not None
    finally:
        call.messages[:] = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    "usage",
    [Usage(None, None, 900), Usage(None, 3, None), Usage(7, None, None)],
    ids=["total", "answer", "prompt"],
)
def test_counts_that_leave_something_out_spend_all_that_was_reserved(gate, alice, usage):
    limit = limited(alice.tenant, "usd_per_day", "1")

    async def call():
        admission = await gate.admit(outgoing(alice.scope))
        await gate.settle(admission, Spent(billed=True, usage=usage))

    asyncio.run(call())
    assert Spending.objects.get(limit=limit).spent == Decimal("0.10")


def test_more_cached_tokens_than_the_prompt_has_cost_the_prompt_and_break_nothing():
    usage, honest = Usage(10, 5, 15, cached_tokens=1000), Usage(10, 5, 15, cached_tokens=10)
    assert cost_of(GPT, usage) == cost_of(GPT, honest)
    assert price_of(GPT, usage) == price_of(GPT, honest)


def test_a_call_that_outlived_its_reservation_is_spent_when_it_ends(gate, clock, alice):
    limit = limited(alice.tenant, "usd_per_day", "0.25")

    async def calls():
        slow = await gate.admit(outgoing(alice.scope))
        clock.pass_by(settings.BROKER_RESERVATION_SECONDS + 1)
        await gate.settle(await gate.admit(outgoing(alice.scope)), answered(10))
        await gate.settle(slow, Spent(billed=True))  # its reader went away; it was billed

    asyncio.run(calls())
    assert Spending.objects.get(limit=limit).spent == Decimal("0.20")


def test_a_caller_that_goes_away_while_it_is_let_in_leaves_nothing_taken(gate, alice):
    limited(alice.tenant, "concurrent_calls", 1)
    limited(alice.tenant, "usd_per_day", "1")

    async def calls():
        await gate.settle(await gate.admit(outgoing(alice.scope)), answered(1))  # warm
        for number in range(60):
            entering = asyncio.ensure_future(gate.admit(outgoing(alice.scope)))
            await asyncio.sleep(number / 4000)
            entering.cancel()
            with suppress(asyncio.CancelledError, LimitExceededError):
                await gate.settle(await entering, Spent(billed=False))
        await gate.aclose()
        await gate.settle(await gate.admit(outgoing(alice.scope)), answered(1))

    asyncio.run(calls())
    assert not Reservation.objects.exists()


def test_a_caller_that_goes_away_while_its_answer_is_counted_has_spent_it(gate, alice):
    limited(alice.tenant, "requests_per_minute", 100)
    limit = limited(alice.tenant, "usd_per_day", "10")

    async def calls():
        for number in range(60):
            admission = await gate.admit(outgoing(alice.scope))
            ending = asyncio.ensure_future(gate.settle(admission, answered(5)))
            await asyncio.sleep(number / 20_000)
            ending.cancel()
            with suppress(asyncio.CancelledError):
                await ending
        await gate.aclose()

    asyncio.run(calls())
    assert not Reservation.objects.exists()
    assert Spending.objects.get(limit=limit).spent == 60 * Decimal("0.05")


def test_calls_that_begin_and_end_under_two_budgets_at_once_do_not_block_each_other(
    gate, clock, alice
):
    """Of the day's budget, set first, the row is the younger one from the second day on."""
    day = limited(alice.tenant, "usd_per_day", "100")
    month = limited(alice.tenant, "usd_per_month", "100")
    clock.pass_by(12 * 3600)  # to the first of a month

    async def one():
        await gate.settle(await gate.admit(outgoing(alice.scope)), answered(1))

    async def crowd():
        await one()
        clock.pass_by(24 * 3600)
        for _ in range(3):
            await asyncio.gather(*(one() for _ in range(30)))

    asyncio.run(crowd())
    assert day.pk < month.pk
    assert Spending.objects.get(limit=month).spent == Decimal("0.91")
