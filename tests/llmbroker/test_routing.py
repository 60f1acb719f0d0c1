"""Which model a call goes to, what a failure does, and what the caller sees."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest

import llmbroker
from llmbroker.addresses import AddressPolicy
from llmbroker.models import CallStatus
from llmbroker.routing.health import MemoryHealth
from tests.llmbroker.conftest import Clock, MakeBroker, model
from tests.support.model_server import ModelServer, Reply, Request, fail, say

HELLO = [{"role": "user", "content": "hello"}]


def statuses(broker: llmbroker.Broker) -> list[tuple[str, str]]:
    """The attempts, oldest first."""
    return [
        (row.llm_name, row.status.value)
        for row in reversed(broker.calls())
        if row.status is not None
    ]


def test_the_model_with_the_highest_weight_answers(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(say("low"))
    other_server.script(say("high"))
    broker = make_broker(model(server, "low", weight=0.2), model(other_server, "high", weight=0.8))

    assert broker.ask("hello").text == "high"
    assert server.requests == []


@pytest.mark.parametrize("status", [401, 402, 404, 429, 500, 503, 529])
def test_another_model_answers_when_the_first_fails(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker, status: int
) -> None:
    server.script(fail(status))
    other_server.script(say("spare"))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "spare", weight=0.1)
    )

    assert broker.ask("hello").llm_name == "spare"
    assert [name for name, _ in statuses(broker)] == ["first", "spare"]


def test_a_host_that_cannot_be_reached_is_passed_over_by_the_next_call(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    dead = llmbroker.LLMConfig("dead", "http://127.0.0.1:9/v1", "m", "KEY", weight=0.9)
    server.script(say("one"), say("two"))
    broker = make_broker(dead, model(server, "alive"))

    assert [broker.ask("hello").text, broker.ask("hello").text] == ["one", "two"]

    assert statuses(broker) == [("dead", "unavailable"), ("alive", "ok"), ("alive", "ok")]


def test_a_request_at_fault_is_returned_at_once_and_cools_nothing(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(400, "messages[0].role is wrong"))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "spare", weight=0.1)
    )

    with pytest.raises(llmbroker.RequestRefusedError, match=r"messages\[0\]\.role is wrong"):
        broker.ask("hello")

    assert other_server.requests == []
    assert broker.snapshot()["first"].usable


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "prompt is too long: 210000 tokens > 200000"),
        (413, "Payload too large"),
        (400, "Invalid schema for function 'f'"),
        (403, "Your request was rejected by our safety system"),
        (422, "messages: field required"),
    ],
)
def test_what_one_caller_sends_twenty_times_is_nobody_else_s_fault(
    server: ModelServer, make_broker: MakeBroker, status: int, message: str
) -> None:
    server.script(*[fail(status, message)] * 20, say("fine"))
    broker = make_broker(model(server))

    for _ in range(20):
        with pytest.raises(llmbroker.LLMRequestError):
            broker.for_scope("ann").ask("hello", wait=0)

    assert {row.cooldown_until for row in broker.calls()} == {None}
    assert broker.for_scope("bob").ask("hello", wait=0).text == "fine"
    assert len(server.requests) == 21


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://nowhere.invalid", "TLS"])
def test_whatever_keeps_a_host_from_being_reached_cools_it_whole(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker, address: str
) -> None:
    if address == "TLS":  # a server that does not speak it
        address = server.base_url.replace("http://", "https://").removesuffix("/v1")
    other_server.answer_with(lambda request: say("fine"))
    broker = make_broker(
        model(server, "first", base_url=f"{address}/v1", weight=0.9),
        model(server, "second", base_url=f"{address}/v1", weight=0.8),
        model(other_server, "alive", weight=0.1),
    )

    assert [broker.ask("hello").llm_name for _ in range(2)] == ["alive", "alive"]
    assert statuses(broker) == [("first", "unavailable"), ("alive", "ok"), ("alive", "ok")]


def test_a_refused_key_is_not_tried_again_and_the_error_says_so(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(401, "bad key"))
    broker = make_broker(model(server))

    with pytest.raises(llmbroker.NoLLMAvailableError, match="refused the key") as caught:
        broker.ask("hello")
    assert caught.value.reason == "excluded"
    with pytest.raises(llmbroker.NoLLMAvailableError):
        broker.ask("hello", wait=0)

    assert len(server.requests) == 1


def test_a_replaced_key_does_not_inherit_the_old_one_s_cooldown(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    class Replaceable(llmbroker.DictSecrets):
        async def keys(self, ref: str, *, scope: str | None) -> list[llmbroker.ApiKey]:
            return [llmbroker.ApiKey("key-1", current, version=current)]

    server.script(fail(401), say("fine"))
    broker = make_broker(model(server), secrets=Replaceable({}))
    current = "sk-old"
    with pytest.raises(llmbroker.NoLLMAvailableError):
        broker.ask("hello", wait=0)

    current = "sk-new"
    assert broker.ask("hello", wait=0).text == "fine"


def test_one_scope_s_refused_key_does_not_stop_another_scope(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(401), say("fine"))
    broker = make_broker(model(server))

    with pytest.raises(llmbroker.NoLLMAvailableError):
        broker.for_scope("ann").ask("hello", wait=0)

    assert broker.for_scope("bob").ask("hello", wait=0).text == "fine"


def test_retry_after_is_kept_to_the_second(
    server: ModelServer, make_broker: MakeBroker, clock: Clock
) -> None:
    server.script(fail(429, "slow down", Retry_After="30"), say("back"))
    broker = make_broker(model(server))

    with pytest.raises(llmbroker.NoLLMAvailableError) as caught:
        broker.ask("hello", wait=0)
    assert caught.value.reason == "timeout"
    assert caught.value.retry_at == datetime.fromtimestamp(clock.now + 30, UTC)

    clock.now += 29.9
    with pytest.raises(llmbroker.NoLLMAvailableError):
        broker.ask("hello", wait=0)
    clock.now += 0.2
    assert broker.ask("hello", wait=0).text == "back"
    assert len(server.requests) == 2


def test_an_outage_of_a_minute_costs_four_requests(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker, clock: Clock
) -> None:
    server.answer_with(lambda request: fail(503))
    other_server.answer_with(lambda request: say("spare"))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "spare", weight=0.1)
    )

    for _ in range(60):
        assert broker.ask("hello").text == "spare"
        clock.now += 1

    assert len(server.requests) <= 4


def test_a_recovered_model_is_probed_beside_another_and_then_trusted_again(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker, clock: Clock
) -> None:
    server.script(fail(500), say("back"), say("again"))
    other_server.answer_with(lambda request: say("spare").after(0.2))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "spare", weight=0.1)
    )
    assert broker.ask("hello").text == "spare"

    clock.now += 6
    assert broker.ask("hello").text == "back"
    assert broker.ask("hello").text == "again"

    broker.close()
    journal = sorted(statuses(broker))
    assert journal.count(("spare", "superseded")) == 1
    assert journal.count(("first", "ok")) == 2


def test_only_one_of_many_callers_probes(
    server: ModelServer, make_broker: MakeBroker, clock: Clock
) -> None:
    gate = threading.Event()
    server.script(fail(500), say("probe").behind(gate))
    broker = make_broker(model(server))
    with pytest.raises(llmbroker.NoLLMAvailableError):
        broker.ask("hello", wait=0)
    clock.now += 6

    prober = threading.Thread(target=lambda: broker.ask("hello"))
    prober.start()
    server.wait_for_requests(2)
    for _ in range(3):
        with pytest.raises(llmbroker.NoLLMAvailableError):
            broker.ask("hello", wait=0)
    gate.set()
    prober.join()

    assert len(server.requests) == 2


def test_wait_none_waits_for_a_model_that_comes_back(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(429, "slow", Retry_After="0.3"), say("later"))
    health = MemoryHealth(jitter=lambda: 0.0)
    broker = make_broker(model(server), health=_Impatient(health))

    started = time.monotonic()
    assert broker.ask("hello").text == "later"
    assert time.monotonic() - started >= 0.3


class _Impatient:
    """A health whose own cooldowns are short, so that no test waits for long."""

    def __init__(self, health: MemoryHealth) -> None:
        self._health = health

    def __getattr__(self, name: str) -> object:
        return getattr(self._health, name)

    async def cool(self, identity: str, *, seconds: float, asked: float | None) -> float:
        return await self._health.cool(identity, seconds=min(seconds, 0.1), asked=asked)


def test_a_number_bounds_the_answer_and_punishes_nobody(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(say("slow").after(1.0), say("quick"))
    broker = make_broker(model(server), health=MemoryHealth())

    with pytest.raises(llmbroker.NoLLMAvailableError) as caught:
        broker.ask("hello", wait=0.2)

    assert caught.value.reason == "timeout"
    assert broker.snapshot()["alpha"].usable
    assert broker.calls()[0].error_detail == "the caller's wait ran out"


def test_a_model_takes_no_more_calls_at_once_than_its_cap(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def answer(request: Request) -> Reply:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return say("ok")

    server.answer_with(answer)
    broker = make_broker(model(server, parallel=2))
    threads = [threading.Thread(target=broker.ask, args=("hello",)) for _ in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(server.requests) == 7
    assert most[0] == 2


def test_the_slot_is_free_again_after_a_failure(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(400), say("ok"))
    broker = make_broker(model(server, parallel=1))

    with pytest.raises(llmbroker.RequestRefusedError):
        broker.ask("hello")
    assert broker.ask("hello", wait=0).text == "ok"


def test_a_slow_model_is_overtaken_by_another_and_its_attempt_is_superseded(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    gate = threading.Event()
    server.script(say("slow").behind(gate))
    other_server.script(say("quick"))
    broker = make_broker(
        model(server, "first", weight=0.9),
        model(other_server, "second", weight=0.1),
        hedge_after=0.1,
    )

    assert broker.ask("hello").text == "quick"
    gate.set()
    broker.close()

    assert sorted(statuses(broker)) == [("first", "superseded"), ("second", "ok")]


def test_fastest_of_two_takes_the_first_answer(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    gate = threading.Event()
    server.script(say("slow").behind(gate))
    other_server.script(say("quick"))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "second", weight=0.1)
    )

    assert broker.ask("hello", fastest_of=2).llm_name == "second"
    gate.set()


def test_ratings_displace_the_curated_order(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: say("bad"))
    other_server.answer_with(lambda request: say("good"))
    broker = make_broker(
        model(server, "favourite", weight=0.9), model(other_server, "outsider", weight=0.6)
    )

    for _ in range(2):
        broker.ask("hello", operation="sum").record_quality(0.0)

    assert broker.ask("hello", operation="sum").text == "good"
    assert broker.ask("hello", operation="other").text == "bad"


def test_a_disabled_model_gets_no_calls(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(say("enabled again"))
    other_server.script(say("other"))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "second", weight=0.1)
    )

    broker.disable_llm("first")
    assert broker.ask("hello").text == "other"
    broker.enable_llm("first")
    assert broker.ask("hello").text == "enabled again"


def test_the_reason_says_why_nothing_is_available(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    with pytest.raises(llmbroker.NoLLMAvailableError) as caught:
        make_broker().ask("hello")
    assert caught.value.reason == "empty_pool"

    with pytest.raises(llmbroker.NoLLMAvailableError, match="OTHER_KEY") as caught:
        make_broker(model(server, api_key_ref="OTHER_KEY")).ask("hello")
    assert caught.value.reason == "no_keys"

    broker = make_broker(model(server))
    broker.disable_llm("alpha")
    with pytest.raises(llmbroker.NoLLMAvailableError) as caught:
        broker.ask("hello")
    assert caught.value.reason == "all_disabled"


def test_a_model_without_a_key_reference_is_called_without_a_key(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(say("local"))

    reply = make_broker(model(server, api_key_ref="")).ask("hello")

    assert (reply.text, reply.key_source) == ("local", None)
    assert server.requests[0].authorization is None


def test_a_parameter_that_a_model_refuses_is_corrected_once_and_remembered(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    refusal = (
        b'{"error":{"message":"\'max_tokens\' cannot be used with this model; send'
        b' \'max_completion_tokens\'.","type":"invalid_request_error","param":"max_tokens",'
        b'"code":"unsupported_parameter"}}'
    )
    server.script(Reply(status=400, body=refusal), say("ok"), say("ok"))
    broker = make_broker(model(server))

    broker.ask("hello", params={"max_tokens": 256})
    broker.ask("hello", params={"max_tokens": 256})

    sent = [
        (body.get("max_tokens"), body.get("max_completion_tokens"))
        for body in (request.body for request in server.requests)
    ]
    assert sent == [(256, None), (None, 256), (None, 256)]
    assert broker.snapshot()["alpha"].usable


def test_a_call_that_a_model_could_not_write_cools_nothing_and_is_asked_for_again_once(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    refusal = Reply(400, b'{"error":{"message":"See failed_generation","code":"tool_use_failed"}}')
    server.script(refusal, refusal)
    other_server.script(say("from the other"))
    broker = make_broker(model(server, "alpha", weight=0.9), model(other_server, "beta"))

    assert broker.ask("hello").text == "from the other"

    assert [row.error_class for row in broker.calls()][1:] == ["malformed_output"] * 2
    assert broker.snapshot()["alpha"].usable


def test_a_provider_s_own_word_on_another_try_is_heeded(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(400, "a moment", x_should_retry="true"), say("ok"))
    assert make_broker(model(server)).ask("hello").text == "ok"

    server.script(fail(429, "never", x_should_retry="false", Retry_After="0"), say("ok"))
    with pytest.raises(llmbroker.NoLLMAvailableError) as caught:
        make_broker(model(server)).ask("hello")
    assert caught.value.reason == "excluded"


@pytest.mark.parametrize(("status", "most"), [(503, 8), (408, 2)])
def test_a_call_makes_no_more_requests_than_it_may_and_each_is_a_row(
    server: ModelServer, make_broker: MakeBroker, status: int, most: int
) -> None:
    server.answer_with(lambda request: fail(status))
    broker = make_broker(*(model(server, f"model-{number}") for number in range(12)))

    with pytest.raises(llmbroker.LLMRequestError):
        broker.ask("hello", wait=5)

    rows = broker.calls()
    assert len(server.requests) == len(rows) == len({row.id for row in rows}) == most


def test_an_attempt_is_journaled_before_its_request_leaves(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    store = llmbroker.InMemoryStore()
    gate = threading.Event()
    server.script(say("ok").behind(gate))
    broker = make_broker(model(server), store=store)
    caller = threading.Thread(target=broker.ask, args=("hello",))
    caller.start()
    server.wait_for_requests(1)

    (intent,) = broker.calls()
    assert (intent.status, intent.http_status) == (CallStatus.STARTED, None)
    gate.set()
    caller.join()

    (row,) = broker.calls()
    assert (row.id, row.status, row.model_answered) == (
        intent.id,
        CallStatus.OK,
        "test-model-answered",
    )


def test_a_guarded_model_in_a_private_network_is_never_asked(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: say("secret"))
    guarded = model(server, guarded=True)

    spellings = ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1"]
    for host in [*spellings, "[::ffff:127.0.0.1]", "0.0"]:
        url = server.base_url.replace("127.0.0.1", host)
        broker = make_broker(model(server, base_url=url, guarded=True))
        with pytest.raises(llmbroker.NoLLMAvailableError, match="could not be reached"):
            broker.ask("hello", wait=0)

    assert server.requests == []
    allowed = AddressPolicy.of(["127.0.0.1"])
    trusting = make_broker(guarded, policy=allowed, health=MemoryHealth())
    assert trusting.ask("hello").text == "secret"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_takes_no_key_along(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker, status: int
) -> None:
    server.script(fail(status, "moved", Location=f"{other_server.base_url}/chat/completions"))
    other_server.answer_with(lambda request: say("secret"))

    with pytest.raises(llmbroker.NoLLMAvailableError) as caught:
        make_broker(model(server)).ask("hello", wait=0)

    assert "secret" not in str(caught.value)
    assert other_server.requests == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages"),
        ({"messages": HELLO, "wait": -1}, "wait"),
        ({"messages": HELLO, "wait": float("nan")}, "wait"),
        ({"messages": HELLO, "fastest_of": 0}, "fastest_of"),
        ({"messages": HELLO, "params": {"model": "other"}}, "model"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_anything_is_sent(
    server: ModelServer, make_broker: MakeBroker, arguments: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        make_broker(model(server)).chat(**arguments)
    assert server.requests == []
