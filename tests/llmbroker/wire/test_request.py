"""One request, built."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from llmbroker.models import LLMConfig
from llmbroker.wire.profiles import PROFILES
from llmbroker.wire.request import Request, build_request

KEY = "tenant-secret-7Hq2mZ0pTENANTA93xLw"
HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [
    {
        "type": "function",
        "function": {"name": "today", "parameters": {"type": "object", "properties": {}}},
    }
]
OPENAI = "https://api.openai.com/v1"


def build(base_url: str = "https://x.test/v1", /, **options: Any) -> Request:
    config = LLMConfig("n", base_url, "m-1", "KEY", tool_params=options.pop("tool_params", {}))
    return build_request(config, options.pop("key", KEY), options.pop("messages", HELLO), **options)


def body(*args: Any, **options: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(build(*args, **options).body)
    return loaded


def test_the_plain_request() -> None:
    request = build()

    assert request.url == "https://x.test/v1/chat/completions"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.body) == {"model": "m-1", "messages": HELLO}


def test_a_stream_is_asked_for_with_its_usage_where_that_can_be_asked_for() -> None:
    assert body(stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body("https://api.mistral.ai/v1", stream=True)
    assert body("https://api.mistral.ai/v1", stream=True)["stream"] is True
    assert build(stream=True).headers["Accept"] == "text/event-stream"


def test_the_profile_may_be_given() -> None:
    assert "stream_options" not in body(stream=True, profile=PROFILES["mistral"])


def test_nothing_that_was_given_is_changed() -> None:
    messages, tools, params = copy.deepcopy((HELLO, TOOLS, {"temperature": 0}))

    build(messages=messages, tools=tools, params=params, tool_params={"top_p": 1})

    assert (messages, tools, params) == (HELLO, TOOLS, {"temperature": 0})


# --- tools ---


@pytest.mark.parametrize("tools", [None, []])
@pytest.mark.parametrize(
    "params", [{}, {"tool_choice": "none"}, {"tool_choice": "auto", "parallel_tool_calls": False}]
)
def test_without_tools_nothing_about_tools_is_sent(tools: Any, params: dict[str, Any]) -> None:
    assert body(tools=tools, params=params, tool_params={"temperature": 0}).keys() == {
        "model",
        "messages",
    }


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "today"}}]
)
def test_a_choice_that_demands_a_tool_where_there_is_none_is_refused(choice: Any) -> None:
    with pytest.raises(ValueError, match="no tools are given"):
        build(tools=[], params={"tool_choice": choice})


def test_tool_params_are_sent_with_tools_and_the_callers_win() -> None:
    sent = body(
        tools=TOOLS,
        params={"temperature": 1, "max_completion_tokens": 9},
        tool_params={"temperature": 0, "reasoning_effort": "low", "max_tokens": 5},
    )

    assert sent["tools"] == TOOLS
    assert (sent["temperature"], sent["reasoning_effort"], sent["max_tokens"]) == (1, "low", 9)


def test_a_parameter_that_the_provider_does_not_know_is_left_out() -> None:
    google = "https://generativelanguage.googleapis.com/v1beta/openai"

    assert "parallel_tool_calls" not in body(
        google, tools=TOOLS, params={"parallel_tool_calls": False}
    )
    assert (
        body(OPENAI, tools=TOOLS, params={"parallel_tool_calls": False})["parallel_tool_calls"]
        is False
    )


# --- parameters ---


@pytest.mark.parametrize("name", ["model", "messages", "stream", "stream_options", "tools"])
def test_what_the_engine_sets_cannot_be_passed(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        build(params={name: "x"})


def test_a_parameter_of_none_is_not_sent() -> None:
    assert "temperature" not in body(params={"temperature": None})


@pytest.mark.parametrize("given", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        (OPENAI, "max_completion_tokens"),
        ("https://api.mistral.ai/v1", "max_tokens"),
        ("https://x.test/v1", "max_tokens"),
    ],
)
def test_the_token_limit_is_sent_once_under_the_name_that_is_known(
    given: str, base_url: str, name: str
) -> None:
    sent = body(base_url, params={given: 256})

    assert {key: value for key, value in sent.items() if key.startswith("max_")} == {name: 256}


def test_of_two_token_limits_the_one_that_the_provider_knows_counts() -> None:
    sent = body(OPENAI, params={"max_tokens": 1, "max_completion_tokens": 2})

    assert sent["max_completion_tokens"] == 2
    assert "max_tokens" not in sent


def test_what_was_refused_before_is_left_out_or_renamed() -> None:
    sent = body(
        params={"max_tokens": 256, "temperature": 0, "top_p": 1},
        stream=True,
        dropped=frozenset({"temperature", "stream_options"}),
        renamed={"max_tokens": "max_completion_tokens"},
    )

    assert sent == {
        "model": "m-1",
        "messages": HELLO,
        "stream": True,
        "top_p": 1,
        "max_completion_tokens": 256,
    }


# --- text and numbers that JSON has no form for ---


@pytest.mark.parametrize("where", ["messages", "tools", "params"])
def test_the_body_is_strict_utf_8_whatever_is_in_it(where: str) -> None:
    odd = "a\ud83db"
    tools = [{"type": "function", "function": {"name": "f", "description": odd}}]
    options: dict[str, Any] = {
        "messages": {"messages": [{"role": "user", "content": odd}]},
        "tools": {"tools": tools},
        "params": {"params": {"user": odd, "seed": 2**70, "logit_bias": {"1": float("nan")}}},
    }[where]

    text = build(**options).body.decode("utf-8")

    assert "a�b" in json.loads(text, parse_constant=pytest.fail).__repr__()


def test_a_history_of_a_stored_answer_can_be_sent() -> None:
    said = {"role": "assistant", "content": "nul:␀ half:�", "x_origin": "elsewhere"}

    assert body(messages=[*HELLO, said, *HELLO])["messages"][1] == {
        "role": "assistant",
        "content": "nul:␀ half:�",
    }


# --- the key ---


def test_the_key_is_not_in_what_prints() -> None:
    request = build(f"https://x.test/v1?key={KEY}")

    assert KEY not in f"{request!r} {request}"


@pytest.mark.parametrize("key", [f"{KEY}\r\n", f"  {KEY}\t"])
def test_white_space_round_the_key_is_not_sent(key: str) -> None:
    assert build(key=key).headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "key", [f"{KEY[:9]}\nX-Evil: 1", f"{KEY} x", f"{KEY}\u200b", f"{KEY}\x00", "ключ-1234567"]
)
def test_a_key_that_cannot_stand_in_a_header_is_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(ValueError, match="cannot stand in a header") as raised:
        build(key=key)

    assert not any(key[at : at + 8] in str(raised.value) for at in range(len(key) - 7))
    assert raised.value.__cause__ is raised.value.__context__ is None


@pytest.mark.parametrize("key", ["", " "])
def test_without_a_key_no_authorization_is_sent(key: str) -> None:
    assert "Authorization" not in build(key=key).headers
