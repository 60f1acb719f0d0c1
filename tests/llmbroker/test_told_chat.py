"""``chat`` with ``on_delta``: the whole reply, and its pieces while they arrive."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import llmbroker
from llmbroker import Delta
from llmbroker.transport import Timeouts
from tests.llmbroker.conftest import Clock, MakeBroker, model
from tests.support.model_server import ModelServer, ask, fail, say, tell

QUESTION = [{"role": "user", "content": "hello"}]


class Told:
    """What a caller was told: pieces as text, a reset as None."""

    def __init__(self) -> None:
        self.pieces: list[str | None] = []
        self.first = threading.Event()

    def __call__(self, delta: Delta | None) -> None:
        self.pieces.append(None if delta is None else delta.text)
        self.first.set()


@pytest.fixture
def told() -> Told:
    return Told()


def test_pieces_are_told_while_they_arrive_and_the_reply_is_that_of_any_chat(
    server: ModelServer, make_broker: MakeBroker, told: Told
) -> None:
    gate = threading.Event()
    server.script(tell("Hel", "lo", usage=(7, 2)).behind(gate))
    broker = make_broker(model(server))

    def watch() -> None:
        assert told.first.wait(10)
        gate.set()  # only now the model goes on

    watcher = threading.Thread(target=watch)
    watcher.start()
    reply = broker.chat(QUESTION, on_delta=told)
    watcher.join()

    assert told.pieces == ["Hel", "lo"]
    assert (reply.text, reply.usage, reply.finish_reason) == (
        "Hello",
        llmbroker.Usage(7, 2, 9),
        "stop",
    )
    assert reply.message == {"role": "assistant", "content": "Hello"}
    (row,) = broker.calls()
    assert (row.id, row.status, row.usage, row.streamed) == (
        reply.call_id,
        llmbroker.CallStatus.OK,
        reply.usage,
        True,
    )
    assert row.first_token_ms is not None
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


def test_reasoning_is_told_as_such(server: ModelServer, make_broker: MakeBroker) -> None:
    server.script(tell("hm", kind="reasoning_content"), tell("hm", kind="reasoning_content"))
    kinds: list[str] = []
    with pytest.raises(llmbroker.LLMRequestError):  # it only thought
        make_broker(model(server)).chat(
            QUESTION, on_delta=lambda delta: kinds.append(delta.kind if delta else "reset"), wait=0
        )
    assert kinds[:2] == ["reasoning", "reset"]


def test_an_answer_that_breaks_off_is_void_and_asked_of_another_model(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker, told: Told
) -> None:
    server.script(tell("Hel", cut=True))
    other_server.script(tell("Good", " day"))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "second", weight=0.1)
    )

    reply = broker.chat(QUESTION, on_delta=told)

    assert told.pieces == ["Hel", None, "Good", " day"]
    assert (reply.text, reply.llm_name) == ("Good day", "second")
    answered, cut = broker.calls()
    assert answered.status is llmbroker.CallStatus.OK
    assert (cut.llm_name, cut.error_class) == ("first", "stream_cut")
    assert cut.cooldown_until is not None


def test_where_there_is_one_model_only_it_is_asked_again_once_it_is_back(
    server: ModelServer, make_broker: MakeBroker, told: Told, clock: Clock
) -> None:
    server.script(tell("Hel", cut=True), tell("Hello"))

    def hear(delta: Delta | None) -> None:
        told(delta)
        clock.now += 10 if delta is None else 0  # longer than it cools

    assert make_broker(model(server)).chat(QUESTION, on_delta=hear).text == "Hello"
    assert told.pieces == ["Hel", None, "Hello"]


def test_what_failed_before_it_said_anything_voids_nothing(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker, told: Told
) -> None:
    server.script(fail(500))
    other_server.script(tell("Hello"))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "second", weight=0.1)
    )
    assert broker.chat(QUESTION, on_delta=told).text == "Hello"
    assert told.pieces == ["Hello"]


def test_a_call_that_breaks_off_everywhere_costs_eight_requests_at_most(
    make_broker: MakeBroker, server: ModelServer, told: Told
) -> None:
    server.script(*[tell("Hel", cut=True)] * 12)
    names = [f"m{number}" for number in range(12)]
    broker = make_broker(*(model(server, name) for name in names))

    with pytest.raises(llmbroker.NoLLMAvailableError):
        broker.chat(QUESTION, on_delta=told)

    assert len(server.requests) == 8
    assert told.pieces == ["Hel", None] * 8
    assert {row.error_class for row in broker.calls()} == {"stream_cut"}


def test_the_caller_s_wait_bounds_the_whole_answer(server: ModelServer, told: Told) -> None:
    gate = threading.Event()
    server.script(tell("Hel", "lo").behind(gate))
    registry = llmbroker.InMemoryRegistry([model(server)])
    with llmbroker.Broker(registry, secrets={"KEY": "k"}) as broker:
        began = time.monotonic()
        with pytest.raises(llmbroker.NoLLMAvailableError):
            broker.chat(QUESTION, on_delta=told, wait=0.3)
        assert time.monotonic() - began < 5
        (row,) = broker.calls()
    gate.set()
    assert (row.error_class, row.error_detail) == ("timeout", "the caller's wait ran out")
    assert told.pieces == ["Hel", "lo", None]


def test_an_answer_without_an_end_is_ended(
    server: ModelServer, make_broker: MakeBroker, told: Told
) -> None:
    server.script(tell(*"many words", pause=0.1), say("short"))
    broker = make_broker(
        model(server, "first", weight=0.9),
        model(server, "second", weight=0.1),
        timeouts=Timeouts(answer=0.3),
    )
    assert broker.chat(QUESTION, on_delta=told).text == "short"
    assert told.pieces[-2:] == [None, "short"]


def test_a_model_may_be_silent_as_long_as_in_a_call_that_nobody_watches(
    server: ModelServer, make_broker: MakeBroker, told: Told
) -> None:
    """It thinks, or its provider holds a tool call back until it is whole."""
    server.script(tell("Hel", "lo", pause=0.3).after(0.3))
    broker = make_broker(model(server), timeouts=Timeouts(first_token=0.1, stall=0.1))
    assert broker.chat(QUESTION, on_delta=told).text == "Hello"
    assert told.pieces == ["Hel", "lo"]


def test_a_server_that_does_not_stream_is_told_in_one_piece(
    server: ModelServer, make_broker: MakeBroker, told: Told
) -> None:
    server.script(say("whole"))
    assert make_broker(model(server)).chat(QUESTION, on_delta=told).text == "whole"
    assert told.pieces == ["whole"]


def test_a_listener_that_fails_ends_the_call_and_frees_the_slot(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(tell("Hel", "lo"), say("free"))
    broker = make_broker(model(server, parallel=1))

    def broken(delta: Delta | None) -> None:
        raise RuntimeError("no ears")

    with pytest.raises(RuntimeError, match="no ears"):
        broker.chat(QUESTION, on_delta=broken)

    assert broker.calls()[0].status is llmbroker.CallStatus.INTERRUPTED
    assert broker.ask("hello", wait=0).text == "free"


def test_a_call_that_is_cancelled_half_way_is_journaled(server: ModelServer) -> None:
    gate = threading.Event()
    server.script(tell("Hel", "lo").behind(gate))

    async def program() -> list[llmbroker.Call]:
        begun = asyncio.Event()
        registry = llmbroker.InMemoryRegistry([model(server)])
        async with llmbroker.AsyncBroker(registry, secrets={"KEY": "k"}) as broker:
            call = asyncio.ensure_future(broker.chat(QUESTION, on_delta=lambda _: begun.set()))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return await broker.calls()

    (row,) = asyncio.run(program())
    gate.set()
    assert row.status is llmbroker.CallStatus.INTERRUPTED


def test_a_tool_loop_tells_what_is_said_in_all_its_steps(
    server: ModelServer, make_broker: MakeBroker, told: Told
) -> None:
    server.script(ask(("today", {}), text="Let me see."), tell("It is ", "Monday."))

    def today() -> str:
        """The day."""
        return "Monday"

    reply = llmbroker.run_tool_loop(
        make_broker(model(server)), QUESTION, tools=[today], on_delta=told
    )
    assert reply.text == "It is Monday."
    assert told.pieces == ["Let me see.", "It is ", "Monday."]
