"""A whole answer, read."""

from __future__ import annotations

import json

import pytest

from llmbroker.models import Usage
from llmbroker.wire.completion import one_tool_call, parse_completion, read_usage
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from tests.llmbroker.wire.streams import ORIGIN, answer, called, parse, recorded, tool_call


def failure_of(body: bytes, secrets: tuple[str, ...] = ()) -> Failure:
    with pytest.raises(ExchangeError) as raised:
        parse_completion(body, origin=ORIGIN, secrets=secrets)
    return raised.value.failure


def test_text_is_read_with_what_the_provider_says_about_it() -> None:
    completion = parse({"role": "assistant", "content": "Hello"}, usage={"prompt_tokens": 3})

    assert completion.text == "Hello"
    assert completion.message == {"role": "assistant", "content": "Hello"}
    assert (completion.model_answered, completion.finish_reason) == ("m-1", "stop")
    assert completion.usage == Usage(3)
    assert (completion.tool_calls, completion.reasoning) == (None, None)


def test_a_finish_reason_and_a_model_that_are_missing_are_none() -> None:
    completion = parse_completion(b'{"choices":[{"message":{"content":"Hi"}}]}', origin=ORIGIN)

    assert (completion.finish_reason, completion.model_answered) == (None, None)


# --- content ---


def test_parts_become_one_text_and_thinking_is_kept_apart() -> None:
    completion = parse(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "10 plus 32"}]},
                {"type": "text", "text": "The way is "},
                {"type": "text", "text": "42 km."},
            ]
        }
    )

    assert (completion.text, completion.reasoning) == ("The way is 42 km.", "10 plus 32")
    assert completion.message["content"] == "The way is 42 km."


def test_a_part_of_unknown_type_is_left_out() -> None:
    parts = [{"type": "hologram", "data": "zz"}, {"type": "text", "text": "ok"}, 3, "!"]

    assert parse({"content": parts}).text == "ok!"


def test_a_refusal_is_an_answer() -> None:
    assert parse({"content": None, "refusal": "I cannot help."}).text == "I cannot help."


def test_nul_and_half_a_pair_become_visible_and_all_else_stays() -> None:
    content = rb"nul:\u0000 half:\ud83d pair:\ud83c\udf0d text:\\u0000"
    body = b'{"choices":[{"message":{"content":"%b"}}]}' % content

    text = parse_completion(body, origin=ORIGIN).text

    assert text == "nul:␀ half:� pair:🌍 text:\\u0000"


def test_a_nul_that_was_not_even_escaped_becomes_visible_in_every_part() -> None:
    body = (
        b'{"id":"x\x00","model":"m\x00","choices":[{"finish_reason":"st\x00op","message":'
        b'{"content":"a\x00b","reasoning":"hm\x00","tool_calls":[{"id":"c\x00","function":'
        b'{"name":"f\x00","arguments":"{\\"a\\":\\"\x00\\"}"}}]}}]}'
    )

    completion = parse_completion(body, origin=ORIGIN)

    assert "\x00" not in repr(completion)
    assert "\\x00" not in repr(completion)
    assert (completion.text, completion.reasoning) == ("a␀b", "hm␀")
    assert called(completion) == [("c␀", "f␀", '{"a":"␀"}')]


# --- what is sent back to the provider ---


def test_fields_of_the_providers_own_are_kept_with_who_sent_them() -> None:
    completion = parse(
        {"content": "42", "reasoning_content": "6 times 7", "annotations": [], "audio": None}
    )

    assert completion.reasoning == "6 times 7"
    assert completion.message == {
        "role": "assistant",
        "content": "42",
        "reasoning_content": "6 times 7",
        "x_origin": ORIGIN,
    }


def test_signatures_on_tool_calls_are_kept_untouched() -> None:
    extra = {"google": {"thought_signature": "c2lnLWFiPT0="}}
    calls = [tool_call(id="a", extra_content=extra), tool_call(id="b")]

    message = parse({"content": None, "tool_calls": calls}).message

    assert message["tool_calls"][0]["extra_content"] == extra
    assert "extra_content" not in message["tool_calls"][1]
    assert message["x_origin"] == ORIGIN


# --- tool calls ---


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"city": "Oslo"}, '{"city":"Oslo"}'),
        ("", "{}"),
        (None, "{}"),
        (" \n", "{}"),
        ('{"city": "Oslo"}', '{"city": "Oslo"}'),
        ("[1,2]", "[1,2]"),
        ([1, 2], "[1,2]"),
        ("null", "null"),
        ('"Oslo"', '"Oslo"'),
        ('{"city":"Os\nlo"}', '{"city":"Os\nlo"}'),
        ('{"k": NaN}', '{"k": NaN}'),
    ],
)
def test_arguments_are_text_and_nothing_is_guessed(arguments: object, text: str) -> None:
    completion = parse({"content": None, "tool_calls": [tool_call(arguments, id="a")]})

    assert called(completion) == [("a", "get_weather", text)]


def test_arguments_that_are_missing_are_an_empty_object() -> None:
    call = {"id": "a", "function": {"name": "today"}}

    assert called(parse({"tool_calls": [call]})) == [("a", "today", "{}")]


def test_ids_that_are_missing_or_repeated_are_replaced_and_good_ones_stay() -> None:
    calls = [
        tool_call(f'{{"path":"{name}"}}', "read_file", id=identity)
        for name, identity in zip("abcd", ["call_1", "call_1", "", None], strict=True)
    ]

    found = called(parse({"tool_calls": calls}, finish="tool_calls"))

    ids = [identity for identity, _, _ in found]
    assert ids[0] == "call_1"
    assert all(ids)
    assert len(set(ids)) == 4
    assert [json.loads(arguments)["path"] for _, _, arguments in found] == list("abcd")


def test_the_same_answer_gets_the_same_ids() -> None:
    message = {"tool_calls": [tool_call(), tool_call()]}

    assert called(parse(message)) == called(parse(message))


def test_a_call_in_the_old_form_is_read() -> None:
    message = {"content": None, "function_call": {"name": "today", "arguments": "{}"}}

    assert [call[1:] for call in called(parse(message))] == [("today", "{}")]


def test_a_tool_call_cut_by_the_limit_is_told_from_a_malformed_one() -> None:
    cut = {"tool_calls": [tool_call('{"path":"notes.md","content":"# Pl', id="a")]}

    def finish_reason(completion_tokens: int) -> str | None:
        usage = {"completion_tokens": completion_tokens}
        return parse(cut, finish="tool_calls", usage=usage, max_tokens=64).finish_reason

    assert finish_reason(64) == "length"
    assert finish_reason(19) == "tool_calls"


def test_one_tool_call_leaves_the_first_and_all_else() -> None:
    completion = parse({"content": "ok", "tool_calls": [tool_call(id="a"), tool_call(id="b")]})

    assert [call[0] for call in called(one_tool_call(completion))] == ["a"]
    assert len(completion.tool_calls or ()) == 2
    assert one_tool_call(parse({"content": "ok"})).text == "ok"


# --- a 200 that is no answer ---


@pytest.mark.parametrize(
    "message", [{"content": ""}, {"content": " \n"}, {"content": None}, {}, {"tool_calls": []}]
)
def test_an_answer_with_nothing_in_it_is_a_failure(message: dict[str, object]) -> None:
    assert failure_of(answer(message)).kind is FailureKind.EMPTY_ANSWER


def test_an_answer_that_is_empty_because_of_the_limit_says_so() -> None:
    failure = failure_of(answer({"content": "", "reasoning": "hm"}, finish="length"))

    assert (failure.kind, failure.code) == (FailureKind.LIMIT_REACHED, "length")


def test_an_answer_that_the_filter_emptied_is_a_refusal_of_the_content() -> None:
    body = answer({"content": None}, finish="content_filter: RECITATION")

    assert failure_of(body).kind is FailureKind.CONTENT_POLICY


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"  ", b"null", b"[]", b"3", b'"text"', b"{}", b"not json", b"\xff\xfe"),
        *(b'{"choices":[]}', b'{"choices":null}', b'{"choices":[null]}', b'{"choices":{}}'),
        b'{"choices":[{"mess',
    ],
)
def test_what_is_no_completion_is_a_failure_of_the_endpoint(body: bytes) -> None:
    assert failure_of(body).kind is FailureKind.INVALID_RESPONSE


def test_a_web_page_gives_a_short_clean_text() -> None:
    page = b"<html><head><style>p {}</style></head><body><h1>Please log&nbsp;in</h1></body></html>"

    failure = failure_of(page)

    assert failure.kind is FailureKind.INVALID_RESPONSE
    assert failure.detail == "a web page: Please log in"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, FailureKind.RATE_LIMITED, 429),
        ({"error": "model is overloaded"}, FailureKind.OVERLOADED, 529),
        ({"type": "error", "error": {"type": "api_error"}}, FailureKind.SERVER_ERROR, 500),
        ([{"error": {"code": 503, "status": "UNAVAILABLE"}}], FailureKind.OVERLOADED, 503),
        ({"object": "error", "message": "boom", "code": 500}, FailureKind.SERVER_ERROR, 500),
        ({"code": 1113, "msg": "insufficient balance"}, FailureKind.QUOTA_EXHAUSTED, 402),
        ({"errors": [{"code": 503, "message": "x"}]}, FailureKind.OVERLOADED, 503),
        ({"choices": [{"error": {"code": 502, "message": "x"}}]}, FailureKind.SERVER_ERROR, 502),
    ],
)
def test_an_error_in_a_200_is_that_error(body: object, kind: FailureKind, status: int) -> None:
    failure = failure_of(json.dumps(body).encode())

    assert (failure.kind, failure.status) == (kind, status)


def test_a_key_in_the_body_is_taken_out() -> None:
    failure = failure_of(b"wrong key tenant-key-0123456789", ("tenant-key-0123456789",))

    assert "tenant" not in failure.detail


# --- numbers that are none ---


def test_nan_infinity_and_huge_numbers_do_not_cost_the_answer() -> None:
    body = (
        b'{"choices":[{"message":{"content":"Yes"},"logprobs":{"content":[{"logprob":-Infinity}]}}],'
        b'"usage":{"prompt_tokens":NaN,"completion_tokens":1,"total_tokens":1e400}}'
    )

    completion = parse_completion(body, origin=ORIGIN)

    assert (completion.text, completion.usage) == ("Yes", Usage(completion_tokens=1))


def test_an_integer_of_5000_digits_is_an_unknown_count() -> None:
    body = answer({"content": "n"}, usage={"prompt_tokens": 0, "total_tokens": 1})
    body = body.replace(b'"prompt_tokens": 0', b'"prompt_tokens": ' + b"9" * 5000)

    assert parse_completion(body, origin=ORIGIN).usage == Usage(total_tokens=1)


def test_json_that_is_nested_without_end_is_a_failure_and_no_crash() -> None:
    assert failure_of(b"[" * 100_000).kind is FailureKind.INVALID_RESPONSE


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (None, None),
        ({}, None),
        ("12", None),
        ([1], None),
        ({"prompt_tokens": None}, None),
        ({"prompt_tokens": True, "completion_tokens": -1, "total_tokens": 2.5}, None),
        ({"prompt_tokens": 2**31, "completion_tokens": 1}, Usage(completion_tokens=1)),
        ({"input_tokens": 5, "output_tokens": 2}, Usage(5, 2, 7)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 9}, Usage(5, 2, 9)),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(5, cached_tokens=4),
        ),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 4}, Usage(5, cached_tokens=4)),
        ({"input_tokens": 5, "cache_read_input_tokens": 4}, Usage(5, cached_tokens=4)),
        ({"prompt_tokens": 5, "prompt_tokens_details": None}, Usage(5)),
        (
            {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}},
            Usage(completion_tokens=9, reasoning_tokens=7),
        ),
    ],
)
def test_usage_is_read_in_every_spelling_and_garbage_is_unknown(
    raw: object, usage: Usage | None
) -> None:
    assert read_usage(raw) == usage


# --- recorded ---


def test_a_recorded_answer() -> None:
    completion = parse_completion(recorded("plain.json"), origin=ORIGIN)

    assert (completion.text, completion.model_answered) == ("Hello!", "local")
    assert completion.usage is not None
    assert completion.usage.cached_tokens is not None
    assert "x_origin" not in completion.message


def test_a_recorded_answer_with_three_tool_calls() -> None:
    completion = parse_completion(recorded("multi-0.json"), origin=ORIGIN)

    assert [name for _, name, _ in called(completion)] == [
        "get_weather",
        "get_weather",
        "calculator",
    ]
    assert completion.message["content"] is None


def test_a_recorded_answer_with_log_probabilities_is_read_without_them() -> None:
    assert parse_completion(recorded("logprobs.json"), origin=ORIGIN).text == "Hello! How"
