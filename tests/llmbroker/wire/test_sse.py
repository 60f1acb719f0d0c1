"""Events out of bytes, by the WHATWG specification."""

from __future__ import annotations

import pytest

from llmbroker.wire.failure import ExchangeError, FailureKind
from llmbroker.wire.sse import EventParser, ServerSentEvent


def data_of(stream: bytes) -> list[bytes]:
    parser = EventParser()
    return [event.data for event in [*parser.feed(stream), *parser.flush()]]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_of_three_ways(end: bytes) -> None:
    assert data_of(b"data: one" + end * 2 + b"data: two" + end * 2) == [b"one", b"two"]


def test_line_ends_may_be_mixed_in_one_stream() -> None:
    assert data_of(b"data: one\r\n\ndata: two\n\rdata: three\r\r\n") == [b"one", b"two", b"three"]


def test_a_carriage_return_ends_a_line_though_its_line_feed_comes_with_the_next_chunk() -> None:
    parser = EventParser()

    assert [event.data for event in parser.feed(b"data: one\r\n\r")] == [b"one"]
    assert parser.feed(b"\ndata: two\r") == []
    assert [event.data for event in parser.feed(b"\n\r\n")] == [b"two"]


def test_one_space_after_the_colon_is_no_part_of_the_value() -> None:
    assert data_of(b"data:one\n\ndata: two\n\ndata:  three\n\n") == [b"one", b"two", b" three"]


def test_comments_and_unknown_fields_are_skipped() -> None:
    assert data_of(b": OPENROUTER PROCESSING\n\n:\n\nfoo: bar\nretry: 3000\n\ndata: x\n\n") == [
        b"x"
    ]


def test_a_comment_between_two_data_lines_does_not_end_the_event() -> None:
    assert data_of(b"data: one\n: keep-alive\ndata: two\n\n") == [b"one\ntwo"]


def test_a_data_line_without_a_value_makes_an_event_with_empty_data() -> None:
    assert data_of(b"event: ping\ndata\n\n") == [b""]


def test_an_event_without_data_is_not_given_out_and_its_name_is_forgotten() -> None:
    parser = EventParser()

    assert parser.feed(b"event: ping\n\ndata: x\n\n") == [ServerSentEvent(b"x")]


def test_the_name_and_the_id_of_an_event_are_kept() -> None:
    parser = EventParser()

    events = parser.feed(b"id: 7\nevent: error\ndata: x\n\nid: a\x00b\ndata: y\n\n")

    assert events == [ServerSentEvent(b"x", "error", "7"), ServerSentEvent(b"y", "message", "7")]


def test_a_byte_order_mark_at_the_start_is_skipped_however_it_is_cut() -> None:
    parser = EventParser()

    events = [*parser.feed(b"\xef\xbb"), *parser.feed(b"\xbfdata: x\n\n")]

    assert [event.data for event in events] == [b"x"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x85"])
def test_what_only_unicode_takes_for_a_line_end_stays_inside_the_line(separator: str) -> None:
    text = f"one{separator}two".encode()

    assert data_of(b"data: " + text + b"\n\n") == [text]


def test_the_end_of_the_stream_closes_the_last_event_and_marks_it_as_cut() -> None:
    parser = EventParser()

    assert parser.feed(b"data: one\n\ndata: [DONE]") == [ServerSentEvent(b"one")]
    assert parser.flush() == [ServerSentEvent(b"[DONE]", cut=True)]


def test_a_line_without_end_is_given_up_before_it_fills_the_memory() -> None:
    parser = EventParser()
    megabyte = b"x" * 1024 * 1024

    for _ in range(32):
        parser.feed(megabyte)
    with pytest.raises(ExchangeError) as raised:
        parser.feed(megabyte)

    assert raised.value.failure.kind is FailureKind.INVALID_RESPONSE


def test_many_events_are_no_large_event() -> None:
    parser = EventParser()
    event = b"data: " + b"x" * 1024 * 1024 + b"\n\n"

    assert sum(len(parser.feed(event)) for _ in range(40)) == 40
