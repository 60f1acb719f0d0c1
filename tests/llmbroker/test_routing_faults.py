"""What must not go wrong in routing whatever fails or is cancelled around it: a slot that stays
taken, an attempt that stays ``started``, a cooldown that nobody deserved."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import pytest

import llmbroker
from llmbroker.models import ApiKey, Call, CallStatus
from llmbroker.routing.health import MemoryHealth
from llmbroker.routing.verdict import Cools
from tests.llmbroker.conftest import Clock
from tests.support.wall import ANSWER, Wall

HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def wall() -> Iterator[Wall]:
    with Wall(pause=0.3) as wall:
        yield wall


def model(wall: Wall, name: str, **settings: object) -> llmbroker.LLMConfig:
    options = {"parallel": 1, **settings}
    return llmbroker.LLMConfig(name, wall.base_url, name, "KEY", **options)  # type: ignore[arg-type]


def pool(wall: Wall, *names: str, **settings: object) -> llmbroker.InMemoryRegistry:
    """Models by behaviour, best first, one call at a time."""
    return llmbroker.InMemoryRegistry(
        model(wall, name, weight=1 / (1 + position), **settings)
        for position, name in enumerate(names)
    )


def make(wall: Wall, *names: str, **options: object) -> llmbroker.AsyncBroker:
    return llmbroker.AsyncBroker(
        **{"registry": pool(wall, *names), "secrets": {"KEY": "sk-wall"}, **options}
    )


def run(program: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(program(), 20))


async def settled(broker: llmbroker.AsyncBroker) -> list[Call]:
    """The journal, oldest first, once nothing is going on any more."""
    await broker._parts.engine.drain()
    return list(reversed(await broker.calls()))


async def identity_of(broker: llmbroker.AsyncBroker, cools: Cools = Cools.MODEL) -> str:
    """The name under which the first model's cooldown of that kind is known."""
    return (await broker._parts.pool.usable(None))[0].ids[cools]


def slots_taken(broker: llmbroker.AsyncBroker) -> int:
    return sum(broker._parts.engine.slots._taken.values())


class Gate:
    """Lets a test stand inside an ``await`` and decide how it ends."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def pass_through(self) -> None:
        self.reached.set()
        await self.opened.wait()


class GatedStore(llmbroker.InMemoryStore):
    """Takes as long to write an outcome as a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def record(self, call: Call) -> None:
        await self.gate.pass_through()
        await super().record(call)


class GatedHealth(MemoryHealth):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def cool(self, identity: str, *, seconds: float, asked: float | None) -> float:
        await self.gate.pass_through()
        return await super().cool(identity, seconds=seconds, asked=asked)


class BrokenError(RuntimeError):
    """What a broken port raises."""


class BrokenHealth(MemoryHealth):
    """Fails in the methods named."""

    def __init__(self, *methods: str) -> None:
        super().__init__()
        for name in methods:
            setattr(self, name, self._fail)

    async def _fail(self, *args: object, **kwargs: object) -> float:
        raise BrokenError("health is broken")


# --- every path gives the slot back and closes its row ---


@pytest.mark.parametrize("name", ["sound", "unavailable", "filtered"])
def test_a_call_cancelled_while_its_outcome_is_written_still_has_its_outcome(
    wall: Wall, name: str
) -> None:
    async def program() -> None:
        store = GatedStore()
        async with make(wall, name, store=store) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO, wait=0))
            await store.gate.reached.wait()
            call.cancel()
            store.gate.opened.set()
            with pytest.raises(asyncio.CancelledError):
                await call
            (row,) = await settled(broker)
            assert row.status not in (None, CallStatus.STARTED)
            assert slots_taken(broker) == 0

    run(program)


def test_a_call_cancelled_while_its_failure_is_judged_gives_its_slot_back(wall: Wall) -> None:
    async def program() -> None:
        health = GatedHealth()
        async with make(wall, "unavailable", health=health) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO, wait=0))
            await health.gate.reached.wait()
            call.cancel()
            health.gate.opened.set()
            with pytest.raises(asyncio.CancelledError):
                await call
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is not CallStatus.STARTED

    run(program)


def test_a_failure_that_cannot_be_cooled_is_a_failure_all_the_same(wall: Wall) -> None:
    async def program() -> None:
        health = BrokenHealth("cool")
        async with make(wall, "unavailable", "sound", health=health) as broker:
            with pytest.raises(BrokenError):
                await broker.chat(HELLO)
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is CallStatus.UNAVAILABLE

    run(program)


def test_an_answer_is_journaled_though_health_cannot_be_told_of_it(wall: Wall) -> None:
    async def program() -> None:
        health = BrokenHealth("clear")
        async with make(wall, "fails-once", health=health) as broker:
            with pytest.raises(llmbroker.NoLLMAvailableError):
                await broker.chat(HELLO, wait=0)
            health._clock = broker._parts.engine.clock = lambda: time.time() + 60
            with suppress(BrokenError):
                await broker.chat(HELLO, wait=0)
            assert [row.status for row in await settled(broker)][1:] == [CallStatus.OK]
            assert slots_taken(broker) == 0

    run(program)


class Watched(llmbroker.DictSecrets):
    """Is told of refused keys, and breaks over it."""

    async def key_refused(self, key: ApiKey, *, detail: str) -> None:
        raise BrokenError("the owner of the keys is away")


def test_a_refused_key_that_cannot_be_reported_gives_its_slot_back(wall: Wall) -> None:
    async def program() -> None:
        secrets = Watched({"KEY": "sk-wall"})
        async with make(wall, "refuses-key", secrets=secrets) as broker:
            with pytest.raises((BrokenError, llmbroker.LLMRequestError)):
                await broker.chat(HELLO, wait=0)
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is CallStatus.ERROR

    run(program)


class NoIntents(llmbroker.InMemoryStore):
    async def begin(self, call: Call) -> None:
        raise BrokenError("the journal is away")


def test_without_an_intent_nothing_is_sent(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "sound", store=NoIntents()) as broker:
            with pytest.raises(BrokenError):
                await broker.chat(HELLO)
            assert wall.visits == []
            assert slots_taken(broker) == 0

    run(program)


@pytest.mark.parametrize(
    "messages",
    [
        [{"content": "no role"}],
        [{"role": "assistant", "tool_calls": 7}],
        [{"role": "user", "content": {1: 2}}],
        [{"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}],
        [{"role": "tool", "content": "x"}],
        [{"role": "tool", "tool_call_id": ["x"], "content": object()}],
    ],
)
def test_a_message_at_fault_is_nobody_else_s_fault(wall: Wall, messages: list[object]) -> None:
    async def program() -> None:
        async with make(wall, "sound") as broker:
            with suppress(ValueError, TypeError, llmbroker.RequestRefusedError):
                await broker.chat(messages, wait=0)  # type: ignore[arg-type]
            assert slots_taken(broker) == 0
            assert all(row.status is not CallStatus.STARTED for row in await settled(broker))
            assert (await broker.chat(HELLO, wait=0)).text == ANSWER

    run(program)


def test_tools_at_fault_leave_no_attempt_open(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "sound") as broker:
            for tools in ([{"type": "function"}], [{}], [{"function": {"parameters": 3}}], ["x"]):
                with suppress(ValueError, TypeError, llmbroker.RequestRefusedError):
                    await broker.chat(HELLO, tools=tools, wait=0)  # type: ignore[arg-type]
            assert slots_taken(broker) == 0
            assert all(row.status is not CallStatus.STARTED for row in await settled(broker))
            assert (await broker.chat(HELLO, wait=0)).text == ANSWER

    run(program)


# --- callers who go away ---


def test_a_caller_s_own_timeout_ends_the_call_at_once(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "silent") as broker:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await broker.chat(HELLO)
            (row,) = await settled(broker)
            assert row.status is CallStatus.INTERRUPTED
            assert slots_taken(broker) == 0
            assert await asyncio.to_thread(wall.visits[0].hung_up.wait, 2)
            assert (await broker.snapshot())["silent"].usable

    run(program)


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05])
@pytest.mark.parametrize("streamed", [False, True], ids=["chat", "stream"])
def test_a_call_cancelled_at_any_moment_leaves_nothing_behind(
    wall: Wall, delay: float, streamed: bool
) -> None:
    async def program() -> None:
        async with make(wall, "fails-once", "sound", hedge_after=0.004) as broker:

            async def call() -> None:
                if streamed:
                    async with broker.stream("hello") as stream:
                        async for _ in stream:
                            pass
                else:
                    await broker.chat(HELLO)

            for _ in range(20):
                task = asyncio.ensure_future(call())
                await asyncio.sleep(delay)
                task.cancel()
                await asyncio.wait([task])
            rows = await settled(broker)
            assert slots_taken(broker) == 0
            assert {row.status for row in rows}.isdisjoint({CallStatus.STARTED})

    run(program)


def test_a_stream_that_its_reader_forgets_frees_its_slot(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "stalls") as broker:
            async for _ in broker.stream("hello"):
                break
            gc.collect()
            await asyncio.sleep(0.05)
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is CallStatus.INTERRUPTED
            assert await asyncio.to_thread(wall.visits[0].hung_up.wait, 2)

    run(program)


def test_a_blocking_stream_that_its_reader_forgets_frees_its_slot(wall: Wall) -> None:
    with llmbroker.Broker(pool(wall, "stalls"), secrets={"KEY": "k"}) as broker:
        for _ in broker.stream("hello"):
            break
        gc.collect()

        assert wall.visits[0].hung_up.wait(2)
        assert slots_taken(broker._broker) == 0
        assert [row.status for row in broker.calls()] == [CallStatus.INTERRUPTED]


def test_a_stream_closed_while_it_opens_is_closed(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "slow") as broker:
            stream = broker.stream("hello")
            reading = asyncio.ensure_future(stream.next_delta())
            await asyncio.sleep(0.1)
            await stream.aclose()
            await asyncio.wait([reading], timeout=2)
            rows = await settled(broker)
            assert slots_taken(broker) == 0
            assert [row.status for row in rows] == [CallStatus.INTERRUPTED]

    run(program)


def test_closing_a_stream_that_is_being_read_is_not_the_model_s_fault(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "stalls") as broker:
            stream = broker.stream("hello")

            async def read() -> None:
                async for _ in stream:
                    pass

            reading = asyncio.ensure_future(read())
            await asyncio.sleep(0.2)
            await stream.aclose()
            await asyncio.wait([reading], timeout=2)
            assert reading.done()
            assert slots_taken(broker) == 0
            assert [row.status for row in await settled(broker)] == [CallStatus.INTERRUPTED]
            assert (await broker.snapshot())["stalls"].usable

    run(program)


@pytest.mark.parametrize("name", ["sound", "cut"])
def test_a_stream_cancelled_at_its_very_end_still_has_its_outcome(wall: Wall, name: str) -> None:
    async def program() -> None:
        store = GatedStore()
        async with make(wall, name, store=store) as broker:
            stream = broker.stream("hello")

            async def read() -> None:
                async for _ in stream:
                    pass

            reading = asyncio.ensure_future(read())
            await store.gate.reached.wait()
            reading.cancel()
            store.gate.opened.set()
            await asyncio.wait([reading])
            await stream.aclose()
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status not in (None, CallStatus.STARTED)

    run(program)


def test_a_stream_cancelled_while_its_break_is_judged_gives_its_slot_back(wall: Wall) -> None:
    async def program() -> None:
        health = GatedHealth()
        async with make(wall, "cut", health=health) as broker:
            stream = broker.stream("hello")

            async def read() -> None:
                async for _ in stream:
                    pass

            reading = asyncio.ensure_future(read())
            await health.gate.reached.wait()
            reading.cancel()
            health.gate.opened.set()
            await asyncio.wait([reading])
            await stream.aclose()
            (row,) = await settled(broker)
            assert slots_taken(broker) == 0
            assert row.status is not CallStatus.STARTED

    run(program)


def test_a_broker_closed_under_its_callers_lets_none_of_them_hang(wall: Wall) -> None:
    broker = llmbroker.Broker(pool(wall, "slow"), secrets={"KEY": "k"})

    def call() -> None:
        with suppress(BaseException):  # any end will do
            broker.ask("hello")

    callers = [threading.Thread(target=call, daemon=True) for _ in range(5)]
    for caller in callers:
        caller.start()
    while not wall.visits:
        time.sleep(0.01)
    broker.close()
    for caller in callers:
        caller.join(5)

    assert not any(caller.is_alive() for caller in callers)
    broker.close()


class SlowStore(llmbroker.InMemoryStore):
    """Takes its time over an outcome, as a database does."""

    async def record(self, call: Call) -> None:
        await asyncio.sleep(0.02)
        await super().record(call)


def test_a_broker_closed_under_its_callers_leaves_no_attempt_open(wall: Wall) -> None:
    store = SlowStore()
    broker = llmbroker.Broker(pool(wall, "slow"), secrets={"KEY": "k"}, store=store)

    def call() -> None:
        with suppress(BaseException):  # any end will do
            broker.ask("hello")

    callers = [threading.Thread(target=call, daemon=True) for _ in range(5)]
    for caller in callers:
        caller.start()
    while not wall.visits:
        time.sleep(0.01)
    broker.close()

    rows = asyncio.run(store.calls(limit=100))
    assert rows
    assert all(row.status is not CallStatus.STARTED for row in rows)
    assert all(row.cooldown_until is None for row in rows)  # it was us who hung up
    for caller in callers:
        caller.join(5)
    broker.close()


# --- races ---


def test_a_policy_refusal_is_returned_though_another_model_is_under_way(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "filtered", "slow") as broker:
            with pytest.raises(llmbroker.ContentPolicyError):
                await broker.chat(HELLO, fastest_of=2)
            rows = await settled(broker)
            assert {(row.llm_name, row.status) for row in rows} == {
                ("filtered", CallStatus.ERROR),
                ("slow", CallStatus.SUPERSEDED),
            }
            assert slots_taken(broker) == 0

    run(program)


def test_of_two_that_answer_at_once_one_is_the_answer(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "sound", "sound/spare") as broker:
            for _ in range(30):
                await broker.chat(HELLO, fastest_of=2, trace_id="t")
            rows = await settled(broker)
            assert sum(row.status is CallStatus.OK for row in rows) == 30
            assert slots_taken(broker) == 0

    run(program)


def test_a_race_of_many_costs_no_more_than_a_call_may(wall: Wall) -> None:
    async def program() -> None:
        names = [f"sound/{number}" for number in range(20)]
        async with make(wall, *names) as broker:
            await broker.chat(HELLO, fastest_of=20)
            assert len(wall.visits) <= 8

    run(program)


def test_a_key_revoked_meanwhile_is_not_used_by_the_second_model(wall: Wall) -> None:
    async def program() -> None:
        secrets = llmbroker.DictSecrets({"KEY": "sk-old", "OTHER": "sk-revoked"})
        registry = llmbroker.InMemoryRegistry(
            [
                model(wall, "slow", weight=0.9),
                llmbroker.LLMConfig("sound", wall.base_url, "sound", "OTHER"),
            ]
        )
        async with make(wall, registry=registry, secrets=secrets, hedge_after=0.1) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO))
            await asyncio.sleep(0.05)
            del secrets._values["OTHER"]
            assert (await call).llm_name == "slow"
            assert wall.visits_to("sound") == []

    run(program)


def test_a_second_model_is_found_though_the_next_one_has_no_slot_left(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "silent", "stalls", "sound", hedge_after=0.2) as broker:
            call = asyncio.ensure_future(broker.chat(HELLO))
            await asyncio.sleep(0.05)
            broker._parts.engine.slots.take(model(wall, "stalls"))  # another caller's
            assert (await asyncio.wait_for(call, 2)).llm_name == "sound"

    run(program)


# --- probes ---


def test_a_slow_model_that_is_well_again_is_trusted_again(wall: Wall, clock: Clock) -> None:
    """It loses every race beside a quicker one, and must come back all the same."""

    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "slow", "sound", health=health, clock=clock) as broker:
            await health.cool(await identity_of(broker), seconds=5, asked=None)
            clock.now += 6
            await broker.chat(HELLO)
            await asyncio.sleep(0.5)
            clock.now += 1
            assert (await broker.chat(HELLO)).llm_name == "slow"

    run(program)


def test_a_probe_that_nobody_waits_for_ends_by_itself(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        limits = llmbroker.Timeouts(first_token=0.3)
        async with make(
            wall, "silent", "sound", health=health, clock=clock, timeouts=limits
        ) as broker:
            await health.cool(await identity_of(broker), seconds=5, asked=None)
            clock.now += 6
            assert (await broker.chat(HELLO)).llm_name == "sound"
            assert slots_taken(broker) == 1  # it goes on, to find out
            assert await asyncio.to_thread(wall.visits_to("silent")[0].hung_up.wait, 2)
            await asyncio.sleep(0.05)
            assert slots_taken(broker) == 0

    run(program)


def test_a_probe_has_no_second_one_beside_it_with_another_key(wall: Wall, clock: Clock) -> None:
    class TwoKeys(llmbroker.DictSecrets):
        async def keys(self, ref: str, *, scope: str | None) -> list[ApiKey]:
            return [ApiKey("one", "sk-1"), ApiKey("two", "sk-2")]

    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        registry = pool(wall, "slow", "sound", parallel=None)
        secrets = TwoKeys({})
        async with make(
            wall, registry=registry, secrets=secrets, health=health, clock=clock
        ) as broker:
            await health.cool(await identity_of(broker, Cools.KEY_ON_MODEL), seconds=5, asked=None)
            clock.now += 6
            await broker.chat(HELLO, fastest_of=2)
            assert len(wall.visits_to("slow")) == 1

    run(program)


@pytest.mark.parametrize("name", ["filtered", "small-window", "refuses-key"])
def test_a_probe_that_proves_nothing_leaves_the_next_one_open(
    wall: Wall, clock: Clock, name: str
) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, name, health=health, clock=clock) as broker:
            identity = await identity_of(broker)
            await health.cool(identity, seconds=5, asked=None)
            clock.now += 6
            with pytest.raises(llmbroker.LLMRequestError):
                await broker.chat(HELLO, wait=0)
            assert await health.claim_probe(identity, lease=60)

    run(program)


def test_a_probe_whose_caller_went_away_leaves_the_next_one_open(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "silent", health=health, clock=clock) as broker:
            identity = await identity_of(broker)
            await health.cool(identity, seconds=5, asked=None)
            clock.now += 6
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(broker.chat(HELLO), 0.1)
            await settled(broker)
            assert await health.claim_probe(identity, lease=60)

    run(program)


def test_a_claim_that_is_half_granted_is_given_back(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "sound", health=health, clock=clock) as broker:
            (candidate,) = await broker._parts.pool.usable(None)
            ids = sorted(candidate.ids.values())
            for identity in (ids[0], ids[-1]):
                await health.cool(identity, seconds=5, asked=None)
            clock.now += 6
            survey = await broker._parts.router._survey(_trip(broker))
            await health.claim_probe(ids[-1], lease=60)  # another caller's
            assert await broker._parts.router._lanes(_trip(broker), survey) == []
            assert await health.claim_probe(ids[0], lease=60)

    run(program)


def _trip(broker: llmbroker.AsyncBroker) -> object:
    from llmbroker.routing.call import Ask
    from llmbroker.routing.router import Trip

    return Trip(Ask(HELLO), broker._parts.engine.clock)


def test_who_may_not_probe_makes_one_request_and_not_two(wall: Wall, clock: Clock) -> None:
    class Taken(MemoryHealth):
        async def claim_probe(self, identity: str, *, lease: float) -> bool:
            return False

    async def program() -> None:
        health = Taken(clock, jitter=lambda: 0.0)
        async with make(
            wall, "silent", "sound", "sound/spare", health=health, clock=clock
        ) as broker:
            await health.cool(await identity_of(broker), seconds=5, asked=None)
            clock.now += 6
            await broker.chat(HELLO)
            await broker._parts.engine.drain()
            assert len(wall.visits) == 1

    run(program)


# --- what cools, and for how long ---


def test_an_answer_that_the_caller_s_own_limit_left_empty_cools_nothing(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "cut-short", "sound") as broker:
            reply = await broker.chat(HELLO, params={"max_tokens": 1})
            assert reply.llm_name == "sound"
            assert (await broker.snapshot())["cut-short"].usable

    run(program)


def test_a_limit_that_says_when_it_passes_is_taken_at_its_word(wall: Wall, clock: Clock) -> None:
    async def program() -> None:
        health = MemoryHealth(clock, jitter=lambda: 0.0)
        async with make(wall, "limited-once", health=health, clock=clock) as broker:
            with pytest.raises(llmbroker.NoLLMAvailableError):
                await broker.chat(HELLO, wait=0)
            clock.now += 2.1
            assert (await broker.chat(HELLO, wait=0)).text == ANSWER

    run(program)


def test_a_caller_s_spent_wait_is_never_held_against_a_model(wall: Wall) -> None:
    async def program() -> None:
        names = [f"silent/{number}" for number in range(3)]
        async with make(wall, *names, hedge_after=None) as broker:
            for _ in range(15):
                with pytest.raises(llmbroker.NoLLMAvailableError):
                    await broker.chat(HELLO, wait=0.05)
            snapshot = await broker.snapshot()
            assert all(snapshot[name].usable for name in names)

    run(program)


# --- many callers ---


def test_callers_who_wait_for_a_slot_do_not_look_the_pool_up_over_and_over(wall: Wall) -> None:
    class Counted(llmbroker.InMemoryRegistry):
        looked = 0

        async def load(self) -> list[llmbroker.LLMConfig]:
            self.looked += 1
            return await super().load()

    async def program() -> None:
        registry = Counted([model(wall, "sound", parallel=2)])
        async with make(wall, registry=registry) as broker:
            await asyncio.gather(*(broker.chat(HELLO) for _ in range(200)))
            assert registry.looked <= 5 * 200

    run(program)


def test_those_who_wait_for_the_same_moment_return_a_few_at_a_time(wall: Wall) -> None:
    async def program() -> None:
        wall.down = True
        async with make(wall, registry=pool(wall, "limits-all", parallel=None)) as broker:
            calls = [asyncio.ensure_future(broker.chat(HELLO)) for _ in range(20)]
            await asyncio.sleep(0.5)
            wall.down, limited_at = False, wall.visits[-1].at
            replies = await asyncio.gather(*calls)
            assert {reply.text for reply in replies} == {ANSWER}
            returns = [visit.at - limited_at for visit in wall.visits[20:]]
            assert len(returns) == 20
            assert min(returns) >= 1  # nobody before the time that was asked for
            assert max(Counter(int(each) for each in returns).values()) <= 8

    run(program)


def test_nothing_grows_with_the_number_of_calls(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, "cut", "fails-once", "sound") as broker:

            async def call(number: int) -> None:
                with suppress(llmbroker.LLMRequestError):
                    if number % 3:
                        await broker.chat(HELLO, wait=0, operation="same")
                    else:
                        async for _ in broker.stream("hello", wait=0, operation="same"):
                            if number % 2:
                                break

            for _ in range(10):
                await asyncio.gather(*(call(number) for number in range(20)))
            gc.collect()
            await asyncio.sleep(0.05)
            await broker._parts.engine.drain()
            engine = broker._parts.engine
            assert not engine._running
            assert not engine.slots._waiting
            assert slots_taken(broker) == 0
            assert len(engine.slots._taken) <= 3
            assert len(engine.health._known) <= 3

    run(program)


def test_an_interrupt_at_the_keyboard_ends_the_call_upstream(wall: Wall) -> None:
    with llmbroker.Broker(pool(wall, "silent"), secrets={"KEY": "k"}) as broker:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            broker.ask("hello")

        assert wall.visits[0].hung_up.wait(2)
        broker.close()
        assert [row.status for row in broker.calls()] == [CallStatus.INTERRUPTED]
        assert slots_taken(broker._broker) == 0


# --- direct ---


def test_a_direct_call_with_a_bad_argument_says_which(wall: Wall) -> None:
    async def program() -> None:
        async with make(wall, direct=[model(wall, "sound")]) as broker:
            client = broker.direct(name="sound")
            with pytest.raises(ValueError, match="model"):
                await client.chat(HELLO, params={"model": "another"})
            with pytest.raises(ValueError, match="role"):
                await client.chat([{"content": "hi"}])

    run(program)
