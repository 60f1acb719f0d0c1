"""What decides the order: quality, latency or cost; and what history teaches."""

from __future__ import annotations

import pytest

import llmbroker
from llmbroker.latency import Latency
from llmbroker.prices import cost_of, typical_cost
from llmbroker.routing.health import MemoryHealth
from tests.llmbroker.conftest import Clock, MakeBroker, model
from tests.support.model_server import ModelServer, fail, say


def test_latency_is_preferred_when_asked_for(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: say("good").after(0.1))
    other_server.answer_with(lambda request: say("quick"))
    broker = make_broker(
        model(server, "good", weight=0.9),
        model(other_server, "quick", weight=0.1),
        health=MemoryHealth(),
    )

    for _ in range(2):  # each is tried once before anything is known
        broker.ask("hello", prefer="latency")

    assert broker.ask("hello", prefer="latency").text == "quick"
    assert broker.ask("hello").text == "good"


def test_the_cheapest_model_is_preferred_when_asked_for(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: say("paid"))
    other_server.answer_with(lambda request: say("own"))
    broker = make_broker(
        model(server, "paid", weight=0.9), model(other_server, "own", weight=0.1, api_key_ref="")
    )

    assert broker.ask("hello", prefer="cost").text == "own"


def test_a_preference_that_does_not_exist_is_refused(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    with pytest.raises(ValueError, match="quality, latency, cost"):
        make_broker(model(server)).ask("hello", prefer="speed")


def test_a_model_that_missed_the_wait_is_tried_later_next_time(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: say("good").after(0.6))
    other_server.answer_with(lambda request: say("quick"))
    broker = make_broker(
        model(server, "good", weight=0.9),
        model(other_server, "quick", weight=0.1),
        health=MemoryHealth(),
    )

    with pytest.raises(llmbroker.NoLLMAvailableError):
        broker.ask("hello", wait=0.2)

    assert broker.ask("hello", wait=0.2).text == "quick"
    assert broker.ask("hello").text == "good"


def test_latency_is_smoothed_and_late_means_late_by_the_model_s_own_standard() -> None:
    latency = Latency()
    assert (latency.expected("m"), latency.unusual("m")) == (None, 0.0)
    for _ in range(50):
        latency.observe("m", 20.0)
    assert latency.expected("m") == pytest.approx(20.0)
    assert 20.0 < latency.unusual("m") < 20.1
    latency.observe_at_least("m", 5.0)
    assert latency.expected("m") == pytest.approx(20.0)
    latency.observe_at_least("m", 100.0)
    assert latency.expected("m") == pytest.approx(30.0)


def test_cost_comes_from_the_price_list_and_is_unknown_where_it_says_nothing() -> None:
    opus = llmbroker.LLMConfig("o", "https://api.anthropic.com/v1", "claude-haiku-4-5", "K")
    usage = llmbroker.Usage(prompt_tokens=1_000_000, completion_tokens=0)
    cost = cost_of(opus, usage)
    assert cost is not None
    assert cost > 0
    strange = llmbroker.LLMConfig("s", "https://llm.example.test/v1", "house-model", "K")
    assert cost_of(strange, usage) is None
    assert typical_cost(llmbroker.LLMConfig("l", "http://127.0.0.1:1/v1", "m", "")) == 0


def test_a_new_process_learns_the_order_from_the_journal(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: say("bad"))
    other_server.answer_with(lambda request: say("good"))
    models = (model(server, "favourite", weight=0.9), model(other_server, "outsider", weight=0.6))
    store = llmbroker.InMemoryStore()
    before = make_broker(*models, store=store)
    for _ in range(3):
        reply = before.ask("hello", operation="sum")
        reply.record_quality(1.0 if reply.text == "good" else 0.0)

    after = make_broker(*models, store=store)
    after.ask("hello")  # the first call only has the journal read, and does not wait for it
    after.close()

    assert after.ask("hello", operation="sum").text == "good"


def test_what_falls_out_of_use_is_logged_once_and_again_when_it_is_back(
    server: ModelServer,
    make_broker: MakeBroker,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.script(fail(503), fail(503), say("back"), say("still"))
    broker = make_broker(model(server))
    for _ in range(2):
        with pytest.raises(llmbroker.NoLLMAvailableError):
            broker.ask("hello", wait=0)
        clock.now += 11
    broker.ask("hello")
    broker.ask("hello")

    told = [record.getMessage() for record in caplog.records if record.name == "llmbroker.pool"]
    assert [line.split(";")[0] for line in told] == ["alpha: overloaded", "alpha: back in use"]


def test_the_next_key_pays_when_one_is_limited_or_refused(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    class Keys(llmbroker.DictSecrets):
        async def keys(self, ref: str, *, scope: str | None) -> list[llmbroker.ApiKey]:
            return [llmbroker.ApiKey(each, f"sk-{each}") for each in ("one", "two", "three")]

    server.script(fail(429, Retry_After="60"), fail(401), say("paid"), say("again"))
    broker = make_broker(model(server), secrets=Keys({}))

    assert broker.ask("hello", wait=0).text == "paid"
    broker.ask("hello", wait=0)

    paid = [request.authorization for request in server.requests]
    assert paid == ["Bearer sk-one", "Bearer sk-two", "Bearer sk-three", "Bearer sk-three"]
