"""What holds for every stream, answer, history and schema there may be."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmbroker.models import LLMConfig
from llmbroker.wire.completion import parse_completion
from llmbroker.wire.deltas import StreamAssembler
from llmbroker.wire.failure import ExchangeError
from llmbroker.wire.failures import read_failure
from llmbroker.wire.history import prepared
from llmbroker.wire.profiles import PROFILES
from llmbroker.wire.readiness import is_ready
from llmbroker.wire.request import build_request
from llmbroker.wire.retry_after import retry_after
from llmbroker.wire.schema import fitted
from llmbroker.wire.scrub import scrubbed
from llmbroker.wire.sse import EventParser, ServerSentEvent
from tests.llmbroker.wire.streams import DONE, ORIGIN, called, chunk, read, recorded, tool_fragment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
many = settings(
    max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)

text = st.text(max_size=12) | st.sampled_from(
    ["\ud83d", "\udf0d", "a\x00b", "\u2028", "{}", '{"a":1}']
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | text
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have each field with a fitting value, with any value, or not at all."""
    return st.fixed_dictionaries({}, optional={name: it | values for name, it in fields.items()})


fragments = objects(
    index=st.integers(0, 2),
    id=st.sampled_from(["", "a", "b"]),
    function=objects(name=st.sampled_from(["f", "g", ""]), arguments=text),
    extra_content=values,
)
messages = objects(
    role=st.just("assistant"),
    content=text | st.lists(objects(type=st.sampled_from(["text", "thinking"]), text=text)),
    reasoning=text,
    reasoning_details=st.lists(objects(type=st.just("t"), text=text, index=st.integers(0, 1))),
    refusal=text,
    tool_calls=st.lists(fragments, max_size=3),
)
choices = objects(
    index=st.integers(0, 1), delta=messages, message=messages, finish_reason=text, error=values
)
chunks = objects(
    id=text, model=text, choices=st.lists(choices, max_size=2), usage=values, error=values
)


def as_json(value: object) -> bytes:
    """As a careless server writes it: NaN, lone surrogates and all."""
    return json.dumps(value).encode()


@st.composite
def cuts(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    """``stream`` in pieces, as a network may deliver it."""
    places = sorted(draw(st.sets(st.integers(0, len(stream)), max_size=30)))
    return [
        stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)
    ]


def events(pieces: list[bytes]) -> list[ServerSentEvent]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.flush()


lines = st.sampled_from(
    [
        b"data: x",
        b"data",
        b"data:",
        b"event: ping",
        b": c",
        b"id: 1",
        b"\n",
        b"\r",
        b"\r\n",
        b"\xef\xbb\xbf",
    ]
) | st.binary(max_size=6)


@many
@given(st.data(), st.lists(lines, max_size=20).map(b"".join))
def test_any_cut_of_any_bytes_gives_the_same_events(data: st.DataObject, stream: bytes) -> None:
    assert events(data.draw(cuts(stream))) == events([stream])


@pytest.mark.parametrize(
    "name", ["plain-stream.sse", "auto-weather-stream.sse", "max-tokens-cut-stream.sse"]
)
@settings(max_examples=40, deadline=None, database=None)
@given(data=st.data())
def test_any_cut_of_a_recorded_stream_gives_the_same_answer(name: str, data: st.DataObject) -> None:
    stream = recorded(name)

    assert read(data.draw(cuts(stream))) == read([stream])


@many
@given(data=st.data(), words=st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=6))
def test_text_in_any_language_comes_through_any_cut(data: st.DataObject, words: list[str]) -> None:
    raw = [
        json.dumps({"choices": [{"delta": {"content": word}}]}, ensure_ascii=False)
        for word in words
    ]
    stream = (
        b"".join(b"data: %b\r\n\r\n" % line.encode() for line in raw)
        + chunk({"content": "."})
        + DONE
    )

    _, completion = read(data.draw(cuts(stream)))

    assert completion.text == "".join(words).replace("\x00", "␀") + "."


@many
@given(st.lists(chunks.map(as_json) | st.binary(max_size=20), max_size=6), st.booleans())
def test_no_stream_makes_the_assembler_raise_anything_but_its_own_error(
    stream: list[bytes], is_error_event: bool
) -> None:
    assembler = StreamAssembler(ORIGIN, max_tokens=3, secrets=["s3cr3t-s3cr3t"])
    try:
        for data in stream:
            for delta in assembler.feed(
                ServerSentEvent(data, "error" if is_error_event else "message")
            ):
                assert delta.text.encode() is not None
        completion = assembler.finish()
    except ExchangeError:
        return
    assert as_json(completion.message).decode("utf-8")
    assert completion.text.encode() is not None


@many
@given(chunks.map(as_json) | values.map(as_json) | st.binary(max_size=50))
def test_no_body_makes_the_parser_raise_anything_but_its_own_error(body: bytes) -> None:
    try:
        completion = parse_completion(body, origin=ORIGIN, max_tokens=3)
    except ExchangeError:
        return
    assert completion.text.strip() or completion.tool_calls
    ids = [identity for identity, _, _ in called(completion)]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert completion.text.encode() is not None


@many
@given(
    st.integers(100, 599), st.dictionaries(st.text(), st.text()), values.map(as_json) | st.binary()
)
def test_no_error_answer_is_too_odd_to_be_read(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    failure = read_failure(status, headers, body, secrets=["s3cr3t-s3cr3t"], now=NOW)

    assert len(failure.detail) <= 300
    assert failure.detail.encode() is not None


HABITS = {
    "as OpenAI": lambda at, first: {"index": at, **({"id": f"c{at}"} if first else {})},
    "id on each": lambda at, first: {"index": at, "id": f"c{at}"},
    "index 0 for all": lambda at, first: {"index": 0, **({"id": f"c{at}"} if first else {})},
    "no index": lambda at, first: {"id": f"c{at}"} if first else {},
    "no id": lambda at, first: {"index": at},
}


@pytest.mark.parametrize("repeats_name", [False, True])
@pytest.mark.parametrize("habit", HABITS.values(), ids=HABITS)
@settings(max_examples=60, deadline=None, database=None)
@given(data=st.data())
def test_calls_are_put_together_whatever_the_habit_and_wherever_the_arguments_are_cut(
    habit: Any, repeats_name: bool, data: st.DataObject
) -> None:
    names = data.draw(st.lists(st.sampled_from(["f", "gg", "f_g"]), min_size=1, max_size=4))
    arguments = [
        json.dumps(data.draw(st.dictionaries(st.text(max_size=3), st.integers(), max_size=3)))
        for _ in names
    ]
    stream = b""
    for at, (name, whole) in enumerate(zip(names, arguments, strict=True)):
        for number, piece in enumerate(data.draw(cuts(whole.encode()))):
            first = number == 0
            stream += tool_fragment(
                piece.decode(), name if first or repeats_name else None, **habit(at, first)
            )

    _, completion = read([stream + chunk(finish="tool_calls")])

    assert [call[1:] for call in called(completion)] == list(zip(names, arguments, strict=True))


conversations = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "system", "developer"]), "content": text | values}
        ),
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": text | st.none()},
            optional={
                "tool_calls": st.lists(fragments, max_size=3) | values,
                "x_origin": st.sampled_from(["here", "there"]),
                "reasoning": text,
            },
        ),
        st.fixed_dictionaries(
            {"role": st.just("tool")},
            optional={
                "tool_call_id": st.sampled_from(["a", "b", ""]) | values,
                "content": text | values,
            },
        ),
    ),
    max_size=8,
)


@many
@given(conversations, st.sampled_from(sorted(PROFILES)), st.booleans())
def test_any_conversation_is_repaired_into_one_that_needs_no_repair(
    conversation: list[dict[str, Any]], family: str, with_tools: bool
) -> None:
    before = repr(conversation)

    copies = prepared(conversation, profile=PROFILES[family], origin="here", with_tools=with_tools)

    assert repr(conversation) == before
    waiting: list[str] = []
    seen: set[str] = set()
    for message in copies:
        assert "x_origin" not in message
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert seen.isdisjoint(waiting)
        assert len(set(waiting)) == len(waiting)
        seen.update(waiting)
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert waiting == []
    again = prepared(copies, profile=PROFILES[family], origin="here", with_tools=with_tools)
    assert ids_of(again) == ids_of(copies)


def ids_of(conversation: list[dict[str, Any]]) -> list[str]:
    return [call["id"] for message in conversation for call in message.get("tool_calls", ())]


@many
@given(conversations, st.sampled_from(sorted(PROFILES)))
def test_a_conversation_found_ready_would_not_have_been_changed(
    conversation: list[dict[str, Any]], family: str
) -> None:
    profile = PROFILES[family]
    if not is_ready(conversation, profile, with_tools=True):
        return
    marker = {"role": "assistant", "content": None}  # makes it unready, and is left out

    repaired = prepared([marker, *conversation], profile=profile, origin="here")

    assert repaired == conversation


@many
@given(
    conversations,
    st.lists(values, max_size=2),
    st.dictionaries(st.sampled_from(["user", "stop"]), values),
)
def test_any_request_is_strict_json(
    conversation: list[dict[str, Any]], descriptions: list[Any], params: dict[str, Any]
) -> None:
    tools = [
        {"type": "function", "function": {"name": "f", "description": it}} for it in descriptions
    ]
    config = LLMConfig("n", "https://x.test/v1", "m", "KEY")

    request = build_request(config, "key", conversation, tools=tools, params=params)

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} in the body")

    assert json.loads(request.body.decode("utf-8"), parse_constant=refuse)


KEYWORDS = (
    *("type", "properties", "required", "items", "prefixItems", "enum", "const", "default"),
    *("anyOf", "oneOf", "allOf", "$ref", "$defs", "format", "additionalProperties"),
)
schemas = st.recursive(
    scalars | st.sampled_from(["object", "string", "array", "#/$defs/a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@many
@given(st.dictionaries(st.sampled_from(KEYWORDS), schemas), st.booleans())
def test_no_schema_is_too_odd_to_be_fitted(schema: dict[str, Any], is_strict: bool) -> None:
    tool = {
        "type": "function",
        "function": {"name": "f", "strict": is_strict, "parameters": schema},
    }
    before = repr(tool)

    for family in ("openai", "gemini", "generic"):
        assert json.dumps(fitted([tool], PROFILES[family]))

    assert repr(tool) == before


@many
@given(
    st.dictionaries(
        st.sampled_from(["Retry-After", "retry-after-ms", "x-ratelimit-reset-tokens", "Date"]),
        st.text(max_size=12)
        | st.floats().map(str)
        | st.integers().map(str)
        | st.datetimes().map(str),
    )
)
def test_a_wait_is_always_finite_not_negative_and_no_longer_than_a_week(
    headers: dict[str, str],
) -> None:
    delay = retry_after(headers, now=NOW)

    assert delay is None or (math.isfinite(delay) and 0 <= delay <= 7 * 24 * 3600)


@many
@given(st.text("abc-", min_size=8, max_size=20), st.data())
def test_no_eight_characters_of_a_secret_survive(secret: str, data: st.DataObject) -> None:
    around = st.text("abc- *", max_size=12)
    said = data.draw(around) + secret[data.draw(st.integers(0, 4)) :] + data.draw(around)

    clean = scrubbed(said, [secret])

    assert not any(secret[at : at + 8] in clean for at in range(len(secret) - 7))
