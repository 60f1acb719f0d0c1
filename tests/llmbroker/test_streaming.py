"""Streams from the pool and from one model, as blocking and as async callers see them."""

from __future__ import annotations

import asyncio
import json

import pytest

import llmbroker
from llmbroker.transport import Timeouts
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, Reply, ask, fail, say


def chunk(**delta: object) -> bytes:
    """One event of a stream."""
    body = {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = (
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n'
)
DONE = b"data: [DONE]\n\n"
HELLO = chunk(content="Hel") + chunk(content="lo 🌍") + STOP + USAGE + DONE


def sse(body: bytes) -> Reply:
    """A streamed reply of exactly these bytes."""
    return Reply(body=body, headers={"Content-Type": "text/event-stream"})


def test_text_arrives_piece_by_piece_and_usage_at_the_end(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(sse(HELLO))
    broker = make_broker(model(server))

    stream = broker.stream("hello", operation="greet")
    assert (stream.llm_name, stream.usage) == (None, None)
    assert list(stream) == ["Hel", "lo 🌍"]

    assert stream.usage == llmbroker.Usage(3, 2, 5)
    assert stream.llm_name == "alpha"
    (row,) = broker.calls()
    assert (row.id, row.status, row.usage, row.streamed) == (
        stream.call_id,
        llmbroker.CallStatus.OK,
        stream.usage,
        True,
    )
    assert row.first_token_ms is not None
    assert server.requests[0].body["stream"] is True


def test_a_stream_fails_over_until_its_first_content(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(sse(b": wait\n\n" + chunk(role="assistant", content="")))
    other_server.script(sse(HELLO))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "second", weight=0.1)
    )

    assert "".join(broker.stream("hello")) == "Hello 🌍"
    assert [row.llm_name for row in broker.calls()] == ["second", "first"]


def test_a_stream_cut_after_its_first_content_is_an_error_and_no_other_model_goes_on(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(sse(chunk(content="Hel")))
    broker = make_broker(
        model(server, "first", weight=0.9), model(other_server, "second", weight=0.1)
    )

    pieces = []
    with pytest.raises(llmbroker.StreamInterruptedError, match="broke off") as caught:
        pieces.extend(broker.stream("hello"))

    assert caught.value.llm_name == "first"
    assert other_server.requests == []
    assert broker.calls()[0].status is llmbroker.CallStatus.ERROR


def test_a_model_that_says_nothing_in_time_is_passed_over(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(sse(HELLO).after(2.0))
    other_server.script(sse(HELLO))
    broker = make_broker(
        model(server, "first", weight=0.9),
        model(other_server, "second", weight=0.1),
        timeouts=Timeouts(first_token=0.2),
    )

    assert "".join(broker.stream("hello")) == "Hello 🌍"
    assert broker.calls()[-1].error_class == "timeout"


def test_closing_early_frees_the_slot_and_journals_what_happened(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(sse(HELLO), say("free"))
    broker = make_broker(model(server, parallel=1))

    with broker.stream("hello") as stream:
        assert next(iter(stream)) == "Hel"

    assert broker.calls()[0].status is llmbroker.CallStatus.INTERRUPTED
    assert broker.ask("hello", wait=0).text == "free"


def test_tool_calls_and_reasoning_arrive_as_deltas_and_whole_at_the_end(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    half = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a"'}}
    rest = {"index": 0, "function": {"arguments": ":1}"}}
    body = chunk(reasoning_content="hm") + chunk(tool_calls=[half]) + chunk(tool_calls=[rest])
    server.script(sse(body + STOP + DONE))
    stream = make_broker(model(server)).stream("hello")

    kinds = [delta.kind for delta in stream.deltas()]

    assert set(kinds) == {"reasoning", "tool_call"}
    assert stream.completion is not None
    assert stream.completion.tool_calls is not None
    assert stream.completion.tool_calls[0]["function"] == {"name": "f", "arguments": '{"a":1}'}


def test_one_tool_call_at_a_time_is_kept_to_whatever_the_model_sends(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    calls = [
        {"index": index, "id": f"c{index}", "function": {"name": "f", "arguments": "{}"}}
        for index in range(2)
    ]
    server.script(sse(chunk(tool_calls=calls) + STOP + DONE), ask(("f", {}), ("g", {})))
    broker = make_broker(model(server))
    once = {"parallel_tool_calls": False}

    stream = broker.stream("hello", params=once)
    assert [delta.id for delta in stream.deltas()] == ["c0"]
    assert stream.completion is not None
    assert [each["id"] for each in stream.completion.tool_calls or []] == ["c0"]
    whole = broker.ask("hello", params=once).tool_calls or []
    assert [each["function"]["name"] for each in whole] == ["f"]


def test_what_a_model_s_own_parameters_say_of_its_tool_calls_is_kept_to_as_well(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    cut = ask(("f", '{"a": 1'), ("g", {}), usage=(10, 64))
    server.script(cut, cut)
    own = {"parallel_tool_calls": False, "max_completion_tokens": 64}
    config = model(server, "one", tool_params=own)
    broker = make_broker(config, direct=[config])
    tools = [{"type": "function", "function": {"name": "f"}}]
    asked = [{"role": "user", "content": "go"}]

    reply = broker.chat(asked, tools=tools)
    direct = broker.direct(name="one").chat(asked, tools=tools)

    for each in (reply, direct):
        assert each.finish_reason == "length"
        assert [call["function"]["name"] for call in each.tool_calls or []] == ["f"]


def test_a_server_that_does_not_stream_gives_its_answer_in_one_piece(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(say("whole"))
    assert list(make_broker(model(server)).stream("hello")) == ["whole"]


def test_a_direct_stream_raises_the_provider_s_error(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(429, "slow", Retry_After="7"), sse(HELLO), sse(chunk(content="Hel")))
    client = make_broker(direct=[model(server, "one")]).direct(name="one")

    with pytest.raises(llmbroker.RateLimitError) as caught:
        list(client.stream("hello"))
    assert caught.value.retry_after == 7
    assert list(client.stream("hello")) == ["Hel", "lo 🌍"]
    pieces = client.stream("hello")
    assert next(pieces) == "Hel"
    with pytest.raises(llmbroker.StreamInterruptedError, match="broke off"):
        next(pieces)


def test_an_async_stream_closes_with_its_block(server: ModelServer) -> None:
    server.script(sse(HELLO))

    async def program() -> tuple[str, list[llmbroker.Call]]:
        registry = llmbroker.InMemoryRegistry([model(server)])
        async with llmbroker.AsyncBroker(registry, secrets={"KEY": "k"}) as broker:
            async with broker.stream("hello") as stream:
                first = await anext(aiter(stream))
            return first, await broker.calls()

    first, rows = asyncio.run(program())
    assert first == "Hel"
    assert [row.status for row in rows] == [llmbroker.CallStatus.INTERRUPTED]
