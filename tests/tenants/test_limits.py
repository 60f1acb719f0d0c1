"""Limits: what is reserved at its worst, what is given back, and that nothing passes them."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest
from django.conf import settings
from uuid_utils.compat import uuid7

from llmbroker import AsyncBroker, InMemoryRegistry, InMemoryStore, LLMConfig, LLMRequestError
from llmbroker.errors import LimitExceededError
from llmbroker.models import Usage
from llmbroker.outgoing import Spent
from tenants.context import Reach, scope_active
from tenants.encryption import Secret
from tenants.limits.gate import LimitGate
from tenants.limits.headers import duration
from tenants.limits.ledger import Ledger
from tenants.limits.rates import Rates, Rule
from tenants.models import Limit, ProviderKey, Reservation, Spending
from tenants.services.keys import add_key
from tests.support.model_server import ModelServer, say
from tests.tenants.limit_helpers import (
    HELLO,
    NOW,
    a_cent_per_answer_token,
    answered,
    ledger,
    limited,
    outgoing,
)


def run(work):
    return asyncio.run(work)


pytestmark = pytest.mark.django_db(transaction=True)


def test_without_limits_nothing_is_asked_of_redis_or_written(gate, alice):
    assert run(gate.admit(outgoing(alice.scope))) is None
    assert not Spending.objects.exists()


def test_requests_per_minute_let_no_more_through_and_say_when_there_is_more(gate, clock, alice):
    limited(alice.tenant, "requests_per_minute", 2)

    async def calls():
        await gate.admit(outgoing(alice.scope))
        clock.pass_by(20)
        await gate.admit(outgoing(alice.scope))
        with pytest.raises(LimitExceededError) as refusal:
            await gate.admit(outgoing(alice.scope))
        assert refusal.value.reset_after == pytest.approx(40, abs=0.1)
        assert (refusal.value.name, refusal.value.of) == ("requests_per_minute", "tenant")
        assert (refusal.value.limit, refusal.value.remaining) == ("2", "0")
        clock.pass_by(40.1)
        await gate.admit(outgoing(alice.scope))
        with pytest.raises(LimitExceededError):
            await gate.admit(outgoing(alice.scope))

    run(calls())


def test_tokens_are_reserved_at_their_worst_and_given_back(gate, alice):
    worst = outgoing(alice.scope).prompt_tokens() + 10
    limited(alice.tenant, "tokens_per_minute", worst + 10)

    async def calls():
        first = await gate.admit(outgoing(alice.scope))
        with pytest.raises(LimitExceededError):
            await gate.admit(outgoing(alice.scope))
        await gate.settle(first, Spent(billed=True, usage=Usage(4, 6, 10)))
        second = await gate.admit(outgoing(alice.scope))
        await gate.settle(second, Spent(billed=False))
        await gate.admit(outgoing(alice.scope))

    run(calls())


def test_a_request_larger_than_the_limit_is_told_so(gate, alice):
    limited(alice.tenant, "tokens_per_minute", 5)
    with pytest.raises(LimitExceededError, match="larger than that") as refusal:
        run(gate.admit(outgoing(alice.scope)))
    assert refusal.value.reset_after is None


def test_concurrent_calls_come_back_and_dead_ones_expire(gate, clock, alice):
    limited(alice.tenant, "concurrent_calls", 1)

    async def calls():
        held = await gate.admit(outgoing(alice.scope))
        with pytest.raises(LimitExceededError):
            await gate.admit(outgoing(alice.scope))
        await gate.settle(held, answered(1))
        await gate.admit(outgoing(alice.scope))  # and dies
        clock.pass_by(settings.BROKER_RESERVATION_SECONDS - 1)
        with pytest.raises(LimitExceededError):
            await gate.admit(outgoing(alice.scope))
        clock.pass_by(1.1)
        await gate.admit(outgoing(alice.scope))

    run(calls())


def test_a_refused_rule_takes_nothing_of_the_others(gate, alice, bob):
    limited(alice.tenant, "requests_per_minute", 3)
    limited(alice.tenant, "requests_per_minute", 1, scope=alice.scope)

    async def calls():
        await gate.admit(outgoing(alice.scope))
        for _ in range(5):
            with pytest.raises(LimitExceededError) as refusal:
                await gate.admit(outgoing(alice.scope))
            assert refusal.value.of == "scope"
        await gate.admit(outgoing(bob.scope))
        await gate.admit(outgoing(bob.scope))
        with pytest.raises(LimitExceededError) as refusal:
            await gate.admit(outgoing(bob.scope))
        assert refusal.value.of == "tenant"

    run(calls())


def test_a_tokens_own_limit_holds_for_calls_made_with_it(gate, alice):
    token = alice.tenant.access_tokens.get()
    limited(alice.tenant, "requests_per_minute", 0, token=token)
    assert run(gate.admit(outgoing(alice.scope))) is None
    reach = Reach(alice.tenant.pk, alice.scope.pk, token.pk)
    with scope_active(reach), pytest.raises(LimitExceededError) as refusal:
        run(gate.admit(outgoing(alice.scope)))
    assert refusal.value.of == "token"


def test_money_is_reserved_at_its_worst_and_spent_as_it_was(gate, alice):
    limit = limited(alice.tenant, "usd_per_day", "0.15")

    async def calls():
        first = await gate.admit(outgoing(alice.scope))  # 0.10 at its worst
        with pytest.raises(LimitExceededError) as refusal:
            await gate.admit(outgoing(alice.scope))
        assert refusal.value.is_money
        assert Decimal(refusal.value.remaining) == Decimal("0.05")
        assert refusal.value.reset_after == 12 * 3600
        await gate.settle(first, answered(3))
        second = await gate.admit(outgoing(alice.scope))
        await gate.settle(second, Spent(billed=True))  # perhaps billed: all of it counts
        with pytest.raises(LimitExceededError):
            await gate.admit(outgoing(alice.scope))
        third = await gate.admit(outgoing(alice.scope, cap=2))
        await gate.settle(third, Spent(billed=False))

    run(calls())
    assert Spending.objects.get(limit=limit).spent == Decimal("0.13")
    assert not Reservation.objects.exists()


def test_a_budget_begins_anew_with_its_period_and_a_dead_calls_share_comes_back(gate, clock, alice):
    limited(alice.tenant, "usd_per_day", "0.10")
    limited(alice.tenant, "usd_per_month", "0.20")

    async def calls():
        await gate.admit(outgoing(alice.scope))  # and dies
        with pytest.raises(LimitExceededError):
            await gate.admit(outgoing(alice.scope))
        clock.pass_by(settings.BROKER_RESERVATION_SECONDS)
        spent = await gate.admit(outgoing(alice.scope))
        await gate.settle(spent, answered(10))
        clock.pass_by(24 * 3600)  # another day, and another month
        for _ in range(1):
            await gate.settle(await gate.admit(outgoing(alice.scope)), answered(10))
        with pytest.raises(LimitExceededError) as refusal:
            await gate.admit(outgoing(alice.scope))
        assert refusal.value.name == "usd_per_day"

    run(calls())
    assert sorted(Spending.objects.values_list("spent", flat=True)) == [Decimal("0.1")] * 4


def test_a_model_without_a_price_does_not_pass_a_budget(clock, alice):
    limited(alice.tenant, "usd_per_month", "100")
    gate = LimitGate(
        Rates(settings.REDIS_URL), ledger(), price=lambda config, usage: None, clock=clock
    )
    with pytest.raises(LimitExceededError, match="no known price"):
        run(gate.admit(outgoing(alice.scope)))


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server


async def streamed(stream):
    return [piece async for piece in stream]


def test_every_road_of_the_engine_passes_the_gate(gate, alice, model):
    """Pool, told as it arrives, stream and direct client; what was not billed is given back."""
    limited(alice.tenant, "usd_per_day", "0.20")
    config = LLMConfig("tested", model.base_url, "test-model", "MODEL_KEY")
    model.script(say("hello", usage=(4, 15)))

    async def calls():
        broker = AsyncBroker(
            InMemoryRegistry([config]),
            secrets={"MODEL_KEY": "k" * 20},
            store=InMemoryStore(),
            gate=gate,
        )
        async with broker:
            caller = broker.for_scope(str(alice.scope.pk))
            params = {"max_tokens": 20}
            await caller.chat(HELLO, params=params)
            limited_now = [
                caller.chat(HELLO, params=params),
                streamed(caller.stream(messages=HELLO, params=params)),
                caller.chat(HELLO, params=params, on_delta=print),
                caller.direct(name="tested").chat(HELLO, params=params),
            ]
            kinds = []
            for road in limited_now:
                try:
                    await road
                except LLMRequestError as error:
                    kinds.append(type(error))
            return kinds

    assert run(calls()) == [LimitExceededError] * 4
    assert not Reservation.objects.exists()


def test_an_answer_without_a_cap_is_held_to_the_installations(gate, alice, model):
    limited(alice.tenant, "tokens_per_minute", 100_000)
    config = LLMConfig("tested", model.base_url, "test-model", "MODEL_KEY")
    model.script(say("hello"))

    async def call():
        broker = AsyncBroker(
            InMemoryRegistry([config]),
            secrets={"MODEL_KEY": "k" * 20},
            store=InMemoryStore(),
            gate=gate,
        )
        async with broker:
            await broker.for_scope(str(alice.scope.pk)).chat(HELLO)

    run(call())
    assert model.requests[-1].body["max_tokens"] == settings.BROKER_UNCAPPED_ANSWER_TOKENS


def test_durations_read_as_openais():
    assert [duration(each) for each in (0.1204, 1, 62.5, 3600)] == [
        "120ms",
        "1s",
        "1m2.5s",
        "1h0m0s",
    ]


def test_without_redis_rates_let_pass_and_money_holds(clock, alice):
    limited(alice.tenant, "requests_per_minute", 1)
    limited(alice.tenant, "usd_per_day", "0.20")
    gate = LimitGate(
        Rates("redis://127.0.0.1:1/0"),
        Ledger("redis://127.0.0.1:1/0"),
        price=a_cent_per_answer_token,
        clock=clock,
    )

    async def calls():
        await gate.admit(outgoing(alice.scope))
        await gate.admit(outgoing(alice.scope))
        with pytest.raises(LimitExceededError) as refusal:
            await gate.admit(outgoing(alice.scope))
        assert refusal.value.is_money

    run(calls())


def test_rules_of_different_windows_do_not_disturb_each_other(clock):
    rates = Rates(settings.REDIS_URL, prefix=f"test-{uuid7()}:", clock=clock.seconds)
    rules = [Rule("a", "requests", 5, 60), Rule("a2", "calls", 2, 900)]

    async def calls():
        assert await rates.take("1", rules) is None
        assert await rates.take("2", rules) is None
        assert (await rates.take("3", rules)).rule.measures == "calls"
        await rates.settle("1", rules, [1, 0])
        assert await rates.standing(rules) == [(2, pytest.approx(60)), (1, pytest.approx(900))]
        await rates.aclose()

    run(calls())


def test_the_api_sets_lists_and_takes_away_limits(api, alice, bob):
    client = api(alice.token)
    made = client.post("/api/v1/limits", {"name": "requests_per_minute", "limit": "3"})
    assert made.status_code == 201
    assert made.json()["remaining"] == "3"
    again = client.post("/api/v1/limits", {"name": "requests_per_minute", "limit": "4"})
    assert again.json()["id"] == made.json()["id"]
    assert [row["limit"] for row in api(bob.token).get("/api/v1/limits").json()["data"]] == ["4"]
    refused = api(bob.token).post("/api/v1/limits", {"name": "usd_per_day", "limit": "3"})
    assert refused.status_code == 403
    assert client.delete(f"/api/v1/limits/{made.json()['id']}").status_code == 204
    assert not Limit.objects.exists()


def test_one_run_too_many_is_a_429_that_says_so(api, alice, bob):
    limited(alice.tenant, "concurrent_runs", 1)
    body = {"messages": HELLO}
    assert api(alice.token).post("/api/v1/runs", body).status_code == 202
    refused = api(bob.token).post("/api/v1/runs", body)
    assert refused.status_code == 429
    error = refused.json()["error"]
    assert (error["code"], error["type"]) == ("limit_exceeded", "rate_limit_error")
    assert error["limit"] == {
        "name": "concurrent_runs", "of": "tenant", "limit": "1", "remaining": "0",
        "reset_after": None,
    }  # fmt: skip


def test_a_keys_last_use_is_noted_once_per_period(gate, clock, alice):
    key = add_key(scope=alice.scope, ref="A_KEY", value=Secret("x" * 30))

    def use():
        call = replace(outgoing(alice.scope), key_id=str(key.pk))
        run(gate.admit(call))
        return ProviderKey.objects.get().last_used_at

    assert use() == NOW
    clock.pass_by(299)
    assert use() == NOW
    clock.pass_by(1)
    assert use() == clock.now
