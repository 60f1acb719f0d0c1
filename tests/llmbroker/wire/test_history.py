"""The conversation as each provider accepts it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from llmbroker.models import Message
from llmbroker.wire.history import prepared
from llmbroker.wire.profiles import PROFILES, Profile, profile_of
from tests.llmbroker.wire.streams import tool_call
from tests.llmbroker.wire.test_profiles import config

OPENAI, GENERIC, MISTRAL = PROFILES["openai"], PROFILES["generic"], PROFILES["mistral"]
GEMINI, ANTHROPIC, DEEPSEEK = PROFILES["gemini"], PROFILES["anthropic"], PROFILES["deepseek"]
GROQ, LLAMACPP = PROFILES["groq"], PROFILES["llamacpp"]
GOOGLE = "gemini generativelanguage.googleapis.com"

ASKED: Message = {"role": "user", "content": "book it"}


def turn(*calls: dict[str, Any], **fields: Any) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def result(identity: Any, content: Any = "ok") -> Message:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def sent(
    messages: list[Any], profile: Profile = GENERIC, origin: str = "here", **options: Any
) -> list[Message]:
    """What is sent; the messages given must stay as they were."""
    before = copy.deepcopy(messages)
    copies = prepared(messages, profile=profile, origin=origin, **options)
    assert messages == before
    assert json.dumps(copies)
    return copies


def calls_and_results(messages: list[Message]) -> list[tuple[str, Any]]:
    """Each call's id and each result's, in the order in which they stand."""
    found: list[tuple[str, Any]] = []
    for message in messages:
        found += [("call", call["id"]) for call in message.get("tool_calls", ())]
        if message["role"] == "tool":
            found.append((message["tool_call_id"], message["content"]))
    return found


# --- what needs no repair ---


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_plain_conversation_is_sent_as_it_is(profile: Profile) -> None:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "what is this?"}]},
    ]

    copies = sent(messages, profile)

    assert copies == messages
    assert all(copy is message for copy, message in zip(copies, messages, strict=True))


@pytest.mark.parametrize("profile", [OPENAI, GENERIC, ANTHROPIC, GROQ])
def test_well_formed_tool_turns_are_sent_as_they_are(profile: Profile) -> None:
    messages = [
        ASKED,
        turn(tool_call(id="c1"), tool_call(id="c2")),
        result("c1"),
        result("c2"),
        {"role": "assistant", "content": "done"},
        ASKED,
        turn(tool_call(id="c3")),
        result("c3"),
    ]

    copies = sent(messages, profile)

    assert all(copy is message for copy, message in zip(copies, messages, strict=True))


@pytest.mark.parametrize("message", ["hello", None, {}, {"role": 3}])
def test_what_is_no_message_is_refused_by_its_number(message: Any) -> None:
    with pytest.raises(ValueError, match="message 1 is no object with a role"):
        sent([ASKED, message])


# --- calls and their results ---


def test_results_stand_next_to_their_calls_and_gaps_are_filled_and_orphans_left_out() -> None:
    copies = sent(
        [
            ASKED,
            turn(tool_call(id="c1"), tool_call(id="c2"), tool_call(id="c3")),
            result("c1", "held"),
            {"role": "user", "content": "hurry up"},
            result("c3", "12A"),
            result("zz9", "left over from a trimmed turn"),
        ]
    )

    assert calls_and_results(copies) == [
        ("call", "c1"),
        ("call", "c2"),
        ("call", "c3"),
        ("c1", "held"),
        ("c2", "No result was recorded for this call."),
        ("c3", "12A"),
    ]
    assert copies[-1] == {"role": "user", "content": "hurry up"}


def test_results_are_put_in_the_order_of_the_calls() -> None:
    copies = sent(
        [ASKED, turn(tool_call(id="a"), tool_call(id="b")), result("b", 1), result("a", 2)]
    )

    assert [content for identity, content in calls_and_results(copies) if identity != "call"] == [
        "2",
        "1",
    ]


def test_a_result_that_came_a_turn_too_late_is_found() -> None:
    copies = sent(
        [
            ASKED,
            turn(tool_call(id="a")),
            turn(tool_call(id="b")),
            result("b", "B"),
            result("a", "A"),
        ]
    )

    assert calls_and_results(copies) == [("call", "a"), ("a", "A"), ("call", "b"), ("b", "B")]


def test_without_ids_results_are_paired_by_position() -> None:
    copies = sent(
        [ASKED, turn(tool_call(id=""), tool_call(id=None)), result(None, "A"), result("", "B")]
    )

    (_, first), (_, second), *results = calls_and_results(copies)
    assert first != second
    assert results == [(first, "A"), (second, "B")]


def test_an_id_used_in_two_turns_occurs_once_in_what_is_sent() -> None:
    copies = sent(
        [
            ASKED,
            turn(tool_call(id="call_0")),
            result("call_0", "A"),
            turn(tool_call(id="call_0")),
            result("call_0", "B"),
        ]
    )

    (_, first), one, (_, second), two = calls_and_results(copies)
    assert first == "call_0" != second
    assert (one, two) == ((first, "A"), (second, "B"))


def test_two_calls_with_one_id_in_one_turn_keep_both_results() -> None:
    copies = sent(
        [ASKED, turn(tool_call(id="x"), tool_call(id="x")), result("x", "A"), result("x", "B")]
    )

    (_, first), (_, second), *results = calls_and_results(copies)
    assert results == [(first, "A"), (second, "B")]
    assert first != second


@pytest.mark.parametrize("content", ["", "  ", None])
def test_no_result_is_blank(content: Any) -> None:
    copies = sent([ASKED, turn(tool_call(id="a")), result("a", content)], OPENAI)

    assert copies[-1]["content"] == "(no output)"


def test_a_result_that_is_no_text_becomes_text() -> None:
    copies = sent([ASKED, turn(tool_call(id="a")), result("a", {"t": 18})], OPENAI)

    assert copies[-1]["content"] == '{"t":18}'


def test_an_empty_list_of_calls_is_not_sent() -> None:
    messages = [ASKED, {"role": "assistant", "content": "hi", "tool_calls": []}, ASKED]

    assert sent(messages)[1] == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{ "city": "Oslo" }', '{ "city": "Oslo" }'),
        ({"city": "Oslo"}, '{"city":"Oslo"}'),
        ('"{\\"city\\": \\"Oslo\\"}"', '{"city":"Oslo"}'),
        ('{"city":"Os\nlo"}', '{"city":"Os\\nlo"}'),
        ('{"k": NaN}', '{"k":null}'),
        ('{"path":"notes.md","content":"# Pl', "{}"),
        ("[1,2]", "{}"),
        ("", "{}"),
        (None, "{}"),
    ],
)
def test_arguments_in_a_history_are_always_the_text_of_an_object(arguments: Any, text: str) -> None:
    copies = sent([ASKED, turn(tool_call(arguments, id="a")), result("a")], OPENAI)

    assert copies[1]["tool_calls"][0]["function"]["arguments"] == text


def test_names_in_a_history_have_the_form_that_all_providers_accept() -> None:
    names = ["query|channel|x", "files.read", "", "ok_name-1"]
    calls = [tool_call(name=name, id=f"c{number}") for number, name in enumerate(names)]

    copies = sent([ASKED, turn(*calls), *(result(call["id"]) for call in calls)])

    assert [call["function"]["name"] for call in copies[1]["tool_calls"]] == [
        "query_channel_x",
        "files_read",
        "unknown",
        "ok_name-1",
    ]


# --- ids in the provider's form ---


def test_mistral_gets_nine_letters_and_digits_the_same_each_time() -> None:
    history = [ASKED, turn(tool_call(id="call_PTLP8xhu"), tool_call(id="abcDEF123"))]
    history += [result("abcDEF123", "B"), result("call_PTLP8xhu", "A")]

    copies = sent(history, MISTRAL)

    (_, first), (_, second), *results = calls_and_results(copies)
    assert len(first) == 9
    assert first.isalnum()
    assert second == "abcDEF123"
    assert results == [(first, "A"), (second, "B")]
    assert copies == sent([*history], MISTRAL)
    assert calls_and_results(sent([*history, ASKED], MISTRAL))[0] == ("call", first)


def test_openai_gets_ids_of_at_most_forty_characters() -> None:
    copies = sent([ASKED, turn(tool_call(id="fc_" + "0" * 50)), result("fc_" + "0" * 50)], OPENAI)

    (_, identity), (paired, _) = calls_and_results(copies)
    assert identity == paired
    assert len(identity) <= 40


# --- fields of the provider's own ---

SIGNATURE = {"google": {"thought_signature": "c2lnLWJ5dGVzLTE="}}
SIGNED = [
    ASKED,
    turn(tool_call(id="fc_1", extra_content=SIGNATURE), tool_call(id="fc_2"), x_origin=GOOGLE),
    result("fc_1"),
    result("fc_2"),
]


def test_a_signature_goes_back_to_its_own_provider_untouched() -> None:
    copies = sent(SIGNED, GEMINI, GOOGLE)

    first, second = copies[1]["tool_calls"]
    assert first["extra_content"] == SIGNATURE
    assert "extra_content" not in second


@pytest.mark.parametrize("profile", [OPENAI, GENERIC, MISTRAL, GROQ])
def test_a_signature_goes_to_no_other_provider(profile: Profile) -> None:
    copies = sent(SIGNED, profile, "elsewhere")

    assert all(call.keys() == {"id", "type", "function"} for call in copies[1]["tool_calls"])


def test_a_signature_of_unknown_origin_goes_only_where_such_fields_belong() -> None:
    history = [
        {key: value for key, value in message.items() if key != "x_origin"} for message in SIGNED
    ]

    assert sent(history, GEMINI, GOOGLE)[1]["tool_calls"][0]["extra_content"] == SIGNATURE
    assert "extra_content" not in sent(history, OPENAI)[1]["tool_calls"][0]


def test_gemini_gets_a_stand_in_for_the_signature_of_a_call_that_another_model_made() -> None:
    history = [ASKED, turn(tool_call(id="a"), tool_call(id="b")), result("a"), result("b")]

    first, second = sent(history, GEMINI, GOOGLE)[1]["tool_calls"]

    assert (
        first["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"
    )
    assert "extra_content" not in second


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_origin_itself_is_never_sent(profile: Profile) -> None:
    history = [ASKED, {"role": "assistant", "content": "hi", "x_origin": "here"}, ASKED]

    assert all("x_origin" not in message for message in sent(history, profile))


def test_reasoning_goes_back_to_its_sender_only() -> None:
    said = {"role": "assistant", "content": "42", "reasoning": "6 x 7", "x_origin": "here"}

    assert sent([ASKED, said, ASKED])[1] == {
        "role": "assistant",
        "content": "42",
        "reasoning": "6 x 7",
    }
    assert sent([ASKED, said, ASKED], origin="there")[1] == {"role": "assistant", "content": "42"}


def test_groq_gets_no_reasoning_though_it_sent_it() -> None:
    said = {"role": "assistant", "content": "42", "reasoning": "6 x 7", "x_origin": "here"}

    assert sent([ASKED, said, ASKED], GROQ)[1] == {"role": "assistant", "content": "42"}


def test_deepseek_gets_reasoning_with_every_tool_call_even_where_there_was_none() -> None:
    history = [
        ASKED,
        turn(tool_call(id="a")),
        result("a"),
        {"role": "assistant", "content": "done"},
    ]

    copies = sent([*history, ASKED], DEEPSEEK)

    assert copies[1]["reasoning_content"] == ""
    assert "reasoning_content" not in copies[3]


def test_fields_that_no_provider_knows_are_left_out_of_any_message() -> None:
    messages = [{"role": "user", "content": "hi", "timestamp": 3, "name": "Ann"}]

    assert sent(messages) == [{"role": "user", "content": "hi", "name": "Ann"}]
    assert sent(messages, GROQ) == [{"role": "user", "content": "hi"}]


def test_tool_messages_carry_the_functions_name_where_it_is_wanted_and_nowhere_else() -> None:
    history = [ASKED, turn(tool_call(id="a")), {**result("a"), "name": "whatever"}]

    assert sent(history, GEMINI)[2]["name"] == "get_weather"
    assert "name" not in sent(history, OPENAI)[2]


# --- where messages may stand ---


def test_system_messages_are_joined_at_the_start_where_the_template_demands_it() -> None:
    messages = [
        {"role": "system", "content": "A"},
        ASKED,
        {"role": "system", "content": "B"},
        ASKED,
    ]

    assert sent(messages, LLAMACPP) == [{"role": "system", "content": "A\n\nB"}, ASKED, ASKED]
    assert sent(messages, OPENAI) == messages


def test_system_messages_of_parts_are_joined_as_parts() -> None:
    part = {"type": "text", "text": "B"}
    messages = [{"role": "system", "content": "A"}, {"role": "system", "content": [part]}, ASKED]

    assert sent(messages, LLAMACPP)[0]["content"] == [{"type": "text", "text": "A"}, part]


def test_a_developer_is_a_system_where_the_role_is_unknown() -> None:
    messages = [{"role": "developer", "content": "be brief"}, ASKED]

    assert sent(messages, OPENAI) == messages
    assert sent(messages)[0]["role"] == "system"


def test_mistral_gets_an_assistant_between_tool_results_and_the_user() -> None:
    history = [ASKED, turn(tool_call(id="abcDEF123")), result("abcDEF123"), ASKED]

    assert [message["role"] for message in sent(history, MISTRAL)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert [message["role"] for message in sent(history)] == ["user", "assistant", "tool", "user"]


def test_who_speaks_last_is_the_user_where_a_prefill_is_refused() -> None:
    history = [ASKED, {"role": "assistant", "content": "I have booked"}]

    assert sent(history, OPENAI) == history
    assert sent(history, ANTHROPIC) == [*history, {"role": "user", "content": "Continue."}]
    assert sent(history, MISTRAL)[-1] == {**history[1], "prefix": True}


# --- blank text ---


def test_blank_messages_are_dropped_or_marked_where_they_are_refused() -> None:
    messages = [
        {"role": "system", "content": " "},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "hi"}]},
    ]

    assert sent(messages, ANTHROPIC) == [
        {"role": "user", "content": "(empty message)"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    ]


def test_blank_messages_stay_where_they_are_accepted() -> None:
    messages = [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, ASKED]

    assert sent(messages, OPENAI) == messages


def test_blank_text_beside_tool_calls_is_no_text() -> None:
    history = [ASKED, turn(tool_call(id="a"), content=" \n"), result("a")]

    assert sent(history, OPENAI)[1]["content"] is None


def test_an_assistant_that_said_nothing_at_all_is_left_out_everywhere() -> None:
    assert sent([ASKED, {"role": "assistant", "content": None}, ASKED], OPENAI) == [ASKED, ASKED]


# --- tool turns in a request without tools ---


def test_tool_turns_are_told_in_words_where_they_are_refused_without_tools() -> None:
    history = [
        ASKED,
        turn(tool_call('{"city":"Oslo"}', id="a"), content="Wait."),
        result("a", "18 C"),
    ]

    assert sent(history, ANTHROPIC, with_tools=False) == [
        ASKED,
        {"role": "assistant", "content": 'Wait.\nCalled get_weather with {"city":"Oslo"}'},
        {"role": "user", "content": "Result of get_weather: 18 C"},
    ]
    assert sent(history, ANTHROPIC)[2]["role"] == "tool"
    assert sent(history, OPENAI, with_tools=False)[2]["role"] == "tool"


def test_the_recorded_servers_own_turns_are_ready_for_any_profile() -> None:
    history = [ASKED, turn(tool_call(id="Nveg7XEERANYCZiYGEOwD4oXeGwQW6ja"))]
    history.append(result("Nveg7XEERANYCZiYGEOwD4oXeGwQW6ja"))

    for base_url in ("http://localhost:8080/v1", "https://api.openai.com/v1"):
        copies = sent(history, profile_of(config(base_url)))
        assert calls_and_results(copies) == calls_and_results(history)
