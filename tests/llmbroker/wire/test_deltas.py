"""A streamed answer, put together."""

from __future__ import annotations

import pytest

from llmbroker.models import Usage
from llmbroker.wire.deltas import Delta, StreamAssembler
from llmbroker.wire.failure import ExchangeError, FailureKind
from llmbroker.wire.sse import ServerSentEvent
from tests.llmbroker.wire.streams import (
    DONE,
    ORIGIN,
    chunk,
    completion,
    event,
    read,
    tool_fragment,
)

HELLO = chunk({"role": "assistant", "content": "Hel"}) + chunk({"content": "lo"})
STOP = chunk(finish="stop")


def failure_of(*pieces: bytes):
    with pytest.raises(ExchangeError) as raised:
        completion(*pieces)
    return raised.value.failure


def test_text_is_given_out_as_it_comes_and_kept_for_the_end() -> None:
    deltas, whole = read([HELLO + STOP + DONE])

    assert deltas == [Delta("text", "Hel"), Delta("text", "lo")]
    assert (whole.text, whole.finish_reason, whole.model_answered) == ("Hello", "stop", "m-1")
    assert whole.message == {"role": "assistant", "content": "Hello"}


def test_has_content_turns_true_with_the_first_piece_and_not_with_the_role() -> None:
    assembler = StreamAssembler(ORIGIN)

    assembler.feed(ServerSentEvent(b'{"choices":[{"delta":{"role":"assistant","content":""}}]}'))
    before = assembler.has_content
    assembler.feed(ServerSentEvent(b'{"choices":[{"delta":{"content":"x"}}]}'))

    assert (before, assembler.has_content) == (False, True)


def test_keep_alives_pings_and_empty_events_change_nothing() -> None:
    noise = (
        b": keep-alive\n\nevent: ping\ndata\n\nevent: ping\ndata: ping\n\nevent: ping\ndata: {}\n\n"
    )

    assert (
        completion(noise, HELLO, noise, b"retry: 3000\r\n\r\n", STOP, noise, DONE).text == "Hello"
    )


def test_a_chunk_cut_inside_a_character_or_a_line_end_changes_nothing() -> None:
    text = "Grüße 雨あがり 🚲!"
    stream = (
        'data: {"choices":[{"delta":{"content":"' + text + '"},"finish_reason":"stop"}]}\r\n\r\n'
    ).encode() + DONE

    assert completion(*(bytes([byte]) for byte in stream)).text == text


def test_invalid_utf_8_is_a_failure_and_not_replaced_silently() -> None:
    broken = b'data: {"choices":[{"delta":{"content":"\xe9"}}]}\n\n'

    assert failure_of(broken, STOP, DONE).kind is FailureKind.INVALID_RESPONSE


def test_a_surrogate_pair_cut_over_two_chunks_becomes_one_character() -> None:
    halves = [
        r'{"choices":[{"delta":{"content":"a\ud83c"}}]}',
        r'{"choices":[{"delta":{"content":"\udf0d!"}}]}',
    ]
    stream = b"".join(b"data: %b\n\n" % half.encode() for half in halves)

    deltas, whole = read([stream + STOP])

    assert whole.text == "a🌍!"
    assert [delta.text for delta in deltas] == ["a", "🌍!"]


def test_nul_and_a_lone_half_of_a_pair_become_visible() -> None:
    stream = rb'data: {"choices":[{"delta":{"content":"a\u0000b\ud83dc"},"finish_reason":"stop"}]}'

    assert completion(stream + b"\n\n", DONE).text == "a␀b�c"


# --- how a stream may end ---


def test_a_finish_reason_is_enough_without_done() -> None:
    assert completion(HELLO, STOP).text == "Hello"


def test_done_is_enough_without_a_finish_reason() -> None:
    assert completion(HELLO, DONE).finish_reason is None


def test_done_without_its_blank_line_counts() -> None:
    assert completion(HELLO, b"data: [DONE]").text == "Hello"


def test_a_stream_that_just_stops_is_cut() -> None:
    assert failure_of(HELLO).kind is FailureKind.STREAM_CUT


def test_a_stream_that_stops_inside_a_chunk_is_cut_and_not_malformed() -> None:
    assert failure_of(HELLO, STOP[:30]).kind is FailureKind.STREAM_CUT


@pytest.mark.parametrize("before", [b"", HELLO])
def test_a_chunk_that_is_no_json_and_may_hold_a_piece_of_the_answer_is_a_failure(
    before: bytes,
) -> None:
    failure = failure_of(before, b'data: {"choices":[{"delta":{"content":"oops\n\n', STOP, DONE)

    assert failure.kind is FailureKind.INVALID_RESPONSE
    assert "oops" in failure.detail


def test_what_is_no_json_before_the_first_content_is_a_failure() -> None:
    assert failure_of(b"data: {oops\n\n", HELLO, STOP, DONE).kind is FailureKind.INVALID_RESPONSE


@pytest.mark.parametrize("noise", [b"{oops", b"<html>", b'{"choices":[{"delta":{"content": '])
def test_noise_between_the_chunks_is_passed_over(noise: bytes) -> None:
    assert completion(HELLO, b"data: " + noise + b"\n\n", STOP, DONE).text == "Hello"


def test_after_noise_it_takes_more_than_done_to_make_an_answer_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noise = b"data: error: wrong key tenant-key-0123456789\n\n"

    with pytest.raises(ExchangeError) as raised:
        completion(HELLO, noise, DONE, secrets=["tenant-key-0123456789"])

    assert raised.value.failure.kind is FailureKind.STREAM_CUT
    assert "wrong key ***" in caplog.text
    assert "tenant" not in caplog.text


@pytest.mark.parametrize("data", [[], 3, "text", None, [1]])
def test_a_chunk_that_is_no_object_is_a_failure(data: object) -> None:
    assert failure_of(event(data)).kind is FailureKind.INVALID_RESPONSE


def test_an_answer_with_nothing_in_it_is_a_failure() -> None:
    failure = failure_of(chunk({"role": "assistant", "content": ""}), STOP, DONE)

    assert (failure.kind, failure.code) == (FailureKind.EMPTY_ANSWER, "stop")


def test_a_content_filter_before_any_text_is_a_refusal_of_the_content() -> None:
    assert failure_of(chunk(finish="content_filter"), DONE).kind is FailureKind.CONTENT_POLICY


def test_what_comes_after_done_is_not_read() -> None:
    assert completion(HELLO, STOP, DONE, b"data: {oops\n\n").text == "Hello"


def test_an_endless_answer_is_given_up() -> None:
    assembler = StreamAssembler(ORIGIN)
    large = ServerSentEvent(b'{"choices":[{"delta":{"content":"%b"}}]}' % (b"x" * 2_000_000))

    for _ in range(16):
        assembler.feed(large)
    with pytest.raises(ExchangeError) as raised:
        assembler.feed(large)

    assert raised.value.failure.kind is FailureKind.INVALID_RESPONSE


# --- errors inside a stream ---


def test_an_error_in_a_chunk_with_no_choices_is_seen() -> None:
    error = event({"id": "x", "choices": [], "error": {"code": 502, "message": "no worker free"}})

    failure = failure_of(HELLO, error, DONE)

    assert (failure.status, failure.detail) == (502, "no worker free")


def test_an_error_event_of_anthropic_is_an_overload() -> None:
    error = b"event: error\n" + event({"type": "error", "error": {"type": "overloaded_error"}})

    failure = failure_of(HELLO, error)

    assert (failure.kind, failure.status) == (FailureKind.OVERLOADED, 529)


def test_an_error_before_any_text_leaves_the_next_endpoint_free_to_answer() -> None:
    assembler = StreamAssembler(ORIGIN)
    error = ServerSentEvent(b'{"error":{"message":"quota exceeded","code":"insufficient_quota"}}')

    with pytest.raises(ExchangeError) as raised:
        assembler.feed(error)

    assert raised.value.failure.kind is FailureKind.QUOTA_EXHAUSTED
    assert not assembler.has_content


def test_an_error_event_may_be_plain_text() -> None:
    failure = failure_of(HELLO, b"event: error\ndata: the model is overloaded\n\n")

    assert failure.kind is FailureKind.OVERLOADED


def test_an_error_inside_a_choice_is_seen() -> None:
    choice = {"index": 0, "delta": {"content": ""}, "error": {"code": 429, "message": "slow down"}}

    assert failure_of(HELLO, event({"choices": [choice]})).kind is FailureKind.RATE_LIMITED


def test_the_finish_reason_error_is_no_success() -> None:
    assert failure_of(HELLO, chunk(finish="error"), DONE).kind is FailureKind.SERVER_ERROR


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 503, "message": "no worker free"}, 503),
        ({"status": "502", "msg": "bad gateway"}, 502),
        ({"status": "error", "message": "boom"}, 500),
        ({"status_code": 500, "message": "boom"}, 500),
        ({"errors": [{"code": 503, "message": "boom"}]}, 503),
        ({"choices": [{"index": 0, "delta": {"error": {"code": 502, "message": "x"}}}]}, 502),
    ],
)
def test_an_error_needs_not_be_called_error(error: dict[str, object], status: int) -> None:
    assert failure_of(HELLO, event(error), DONE).status == status


@pytest.mark.parametrize(
    "data",
    [
        {"choices": [], "prompt_filter_results": []},
        {"type": "ping", "status": "ok"},
        {"message": "welcome"},
        {"code": 0, "msg": "success"},
    ],
)
def test_what_tells_of_no_error_is_passed_over(data: dict[str, object]) -> None:
    assert completion(HELLO, event(data), STOP, DONE).text == "Hello"


def test_a_key_that_the_error_repeats_is_taken_out() -> None:
    assembler = StreamAssembler(ORIGIN, secrets=["tenant-key-0123456789"])

    with pytest.raises(ExchangeError) as raised:
        assembler.feed(ServerSentEvent(b'{"error":{"message":"bad key tenant-key-0123456789"}}'))

    assert raised.value.failure.detail == "bad key ***"


# --- usage ---


def usage(**counts: int | None) -> bytes:
    return event({"choices": [], "usage": counts})


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([usage(prompt_tokens=12, completion_tokens=3, total_tokens=15)], Usage(12, 3, 15)),
        ([usage(prompt_tokens=12, completion_tokens=None, total_tokens=None)], Usage(12)),
        (
            [
                chunk({"content": "!"}, usage={"prompt_tokens": 12, "completion_tokens": 2}),
                usage(prompt_tokens=12, completion_tokens=3),
            ],
            Usage(12, 3, 15),
        ),
        (
            [
                chunk(usage={"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 13}),
                usage(completion_tokens=3),
            ],
            Usage(12, 3, 15),
        ),
        (
            [event({"choices": [{"index": 0, "delta": {}, "usage": {"total_tokens": 4}}]})],
            Usage(total_tokens=4),
        ),
        ([chunk(usage=None), usage(), event({"choices": [], "usage": None})], None),
        ([event({"choices": [], "x_groq": {"usage": {"prompt_tokens": 4}}})], Usage(4)),
    ],
)
def test_the_last_usage_counts_and_the_unknown_stays_unknown(
    chunks: list[bytes], expected: Usage | None
) -> None:
    assert completion(chunk({"content": "Hi"}), *chunks, STOP, DONE).usage == expected


# --- content and reasoning ---


def test_content_may_be_text_or_parts_in_one_stream_and_thinking_is_kept_apart() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "10 plus 32"}]}
    deltas, whole = read(
        [
            chunk({"content": [thinking]}),
            chunk({"content": [{"type": "text", "text": "The way is "}]}),
            chunk({"content": "42 km."}),
            chunk({"content": None}, finish="stop"),
            DONE,
        ]
    )

    assert (whole.text, whole.reasoning) == ("The way is 42 km.", "10 plus 32")
    assert [delta.kind for delta in deltas] == ["reasoning", "text", "text"]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_to_its_sender_under_the_name_it_came_with(name: str) -> None:
    whole = completion(chunk({name: "so "}), chunk({name: "be it"}), HELLO, STOP, DONE)

    assert whole.reasoning == "so be it"
    assert whole.message == {
        "role": "assistant",
        "content": "Hello",
        name: "so be it",
        "x_origin": ORIGIN,
    }


def test_reasoning_sent_under_two_names_is_given_out_once() -> None:
    deltas, whole = read([chunk({"reasoning": "hm", "reasoning_content": "hm"}), HELLO, STOP])

    assert [delta.text for delta in deltas if delta.kind == "reasoning"] == ["hm"]
    assert whole.reasoning == "hm"


def test_pieces_of_one_reasoning_detail_become_one_again() -> None:
    pieces = [
        {"type": "reasoning.text", "text": "Let me ", "index": 0},
        {"type": "reasoning.text", "text": "see.", "index": 0},
        {"type": "reasoning.text", "signature": "c2ln", "index": 0},
        {"type": "reasoning.encrypted", "data": "eHg=", "index": 1},
    ]

    whole = completion(*(chunk({"reasoning_details": [piece]}) for piece in pieces), HELLO, STOP)

    assert whole.message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Let me see.", "index": 0, "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "eHg=", "index": 1},
    ]
    assert whole.reasoning == "Let me see."


def test_a_refusal_is_the_answer() -> None:
    whole = completion(chunk({"refusal": "I cannot "}), chunk({"refusal": "help."}), STOP, DONE)

    assert whole.text == "I cannot help."


def test_a_whole_message_in_a_chunk_is_read_unless_it_repeats_the_deltas() -> None:
    whole_message = event({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})

    assert completion(whole_message).text == "Hello"
    assert completion(HELLO, whole_message).text == "Hello"


def test_only_the_first_of_several_choices_is_read() -> None:
    second = event({"choices": [{"index": 1, "delta": {"content": "other"}}]})

    assert completion(HELLO, second, STOP, DONE).text == "Hello"


def test_a_tool_call_cut_by_the_limit_is_marked_as_cut_though_the_server_says_otherwise() -> None:
    stream = [
        tool_fragment('{"path": "no', "write_file", index=0, id="c1"),
        chunk(finish="tool_calls"),
        event({"choices": [], "usage": {"completion_tokens": 64}}),
        DONE,
    ]

    assert completion(*stream, max_tokens=64).finish_reason == "length"
    assert completion(*stream, max_tokens=65).finish_reason == "tool_calls"
