"""The second seed document ("Agentlarga harakat berish"): functions called by hand and by the loop.

Its programs for Semantic Kernel run in prompts/test_seed_programs.py, its exercise in
tests/acceptance/test_three_functions.py.
"""

# ruff: noqa: RET505 - the page's code as it stands

from __future__ import annotations

import json
from typing import Literal

import pytest

import llmbroker
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, ask, say

# The page's own, but for the client: ``broker.chat`` in the place of ``completions.create``.
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "recommend",
            "description": "Berilgan mavzu bo'yicha tavsiya beradi.",
            "parameters": {
                "type": "object",
                "properties": {
                    "topic": {
                        "type": "string",
                        "description": "Tavsiya so'ralayotgan mavzu",
                    },
                    "rating": {
                        "type": "string",
                        "description": "Tavsiya sifati",
                        "enum": ["good", "bad", "terrible"],
                    },
                },
                "required": ["topic"],
            },
        },
    }
]


def recommend(topic, rating="good"):
    """Bu — haqiqiy Python funksiyasi. Model uni chaqirishni so'raydi, biz bajaramiz."""
    if "vaqt sayohati" in topic.lower():
        return json.dumps(
            {"topic": "vaqt sayohati", "tavsiya": "Orqaga kelajakka", "rating": rating}
        )
    elif "retsept" in topic.lower():
        return json.dumps({"topic": "retsept", "tavsiya": "Osh", "rating": rating})
    elif "sovg'a" in topic.lower():
        return json.dumps({"topic": "sovg'a", "tavsiya": "Kitob", "rating": rating})
    else:
        return json.dumps({"topic": topic, "tavsiya": "noma'lum"})


def suhbat(broker, user_message):
    xabarlar = conversation(user_message)

    # 1. Birinchi so'rov — funksiya ta'riflari bilan
    javob = broker.chat(xabarlar, tools=TOOLS)
    tool_calls = javob.tool_calls

    if not tool_calls:
        return javob.text

    # 2. Assistant javobini tarixga qo'shamiz
    xabarlar.append(javob.message)

    # 3. Har funksiyani bajaramiz
    mavjud = {"recommend": recommend}

    for tool_call in tool_calls:
        funksiya_nomi = tool_call["function"]["name"]
        argumentlar = json.loads(tool_call["function"]["arguments"])

        natija = mavjud[funksiya_nomi](**argumentlar)

        # 4. Natijani tarixga qo'shamiz — tool_call_id bilan
        xabarlar.append(
            {
                "role": "tool",
                "tool_call_id": tool_call["id"],
                "name": funksiya_nomi,
                "content": natija,
            }
        )

    # 5. Ikkinchi so'rov — model natijani tabiiy tilga aylantiradi
    return broker.chat(xabarlar).text


def conversation(user_message: str) -> list[dict[str, object]]:
    return [
        {"role": "system", "content": "Siz foydali yordamchisiz."},
        {"role": "user", "content": user_message},
    ]


PARALLEL = """Menga quyidagilarni tavsiya qil:
1. Vaqt sayohati filmi
2. Retsept
3. Sovg'a"""
THREE_CALLS = ask(
    ("recommend", {"topic": "vaqt sayohati filmi", "rating": "good"}),
    ("recommend", {"topic": "retsept"}),
    ("recommend", {"topic": "sovg'a"}),
    ids=("call_film", "call_osh", "call_kitob"),
)
THREE_RESULTS = [
    ("call_film", "Orqaga kelajakka"),
    ("call_osh", "Osh"),
    ("call_kitob", "Kitob"),
]


def results(server: ModelServer) -> list[tuple[str, str]]:
    """The id and the recommendation of each result that the last request told."""
    told = [each for each in server.requests[-1].messages if each["role"] == "tool"]
    return [(each["tool_call_id"], json.loads(each["content"])["tavsiya"]) for each in told]


def test_the_model_only_names_the_function_and_its_arguments(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(ask(("recommend", {"topic": "vaqt sayohati filmi", "rating": "good"})))

    javob = make_broker(model(server)).chat(
        conversation("Yaxshi vaqt sayohati filmini tavsiya qil"),
        tools=TOOLS,
        params={"temperature": 0.7},
    )

    assert javob.tool_calls is not None
    (call,) = javob.tool_calls
    assert call["function"]["name"] == "recommend"
    assert json.loads(call["function"]["arguments"]) == {
        "topic": "vaqt sayohati filmi",
        "rating": "good",
    }
    assert server.requests[0].body["tools"] == TOOLS
    assert server.requests[0].body["temperature"] == 0.7


def test_the_page_s_cycle_by_hand_answers_three_calls_at_once(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(THREE_CALLS, say("Uchta tavsiya."))

    assert suhbat(make_broker(model(server)), PARALLEL) == "Uchta tavsiya."

    assert results(server) == THREE_RESULTS
    assert "tools" not in server.requests[-1].body


def test_a_question_that_needs_no_function_is_answered_at_once(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(say("Salom!"))

    assert suhbat(make_broker(model(server)), "Salom") == "Salom!"
    assert len(server.requests) == 1


def test_the_loop_does_the_same_in_one_call(server: ModelServer, make_broker: MakeBroker) -> None:
    server.script(THREE_CALLS, say("Uchta tavsiya."))

    reply = llmbroker.run_tool_loop(
        make_broker(model(server)),
        conversation(PARALLEL),
        tools=TOOLS,
        dispatch={"recommend": recommend},
    )

    assert reply.text == "Uchta tavsiya."
    assert results(server) == THREE_RESULTS


def test_an_enum_limits_what_reaches_the_function(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(ask(("recommend", {"topic": "retsept", "rating": "zo'r"})), say("Kechirasiz."))

    llmbroker.run_tool_loop(
        make_broker(model(server)),
        conversation("Zo'r retsept tavsiya qil"),
        tools=TOOLS,
        dispatch={"recommend": pytest.fail},
    )

    (told,) = [each for each in server.requests[-1].messages if each["role"] == "tool"]
    assert told["content"].startswith("Tool recommend failed: ")
    assert "rating" in told["content"]


def test_a_signature_makes_the_page_s_definition() -> None:
    def recommend(topic: str, rating: Literal["good", "bad", "terrible"] = "good") -> str:
        """Berilgan mavzu bo'yicha tavsiya beradi.

        Args:
            topic: Tavsiya so'ralayotgan mavzu
            rating: Tavsiya sifati
        """
        return topic + rating

    made = llmbroker.Function.of(recommend).schema["function"]
    page = TOOLS[0]["function"]

    assert made["description"] == page["description"]
    assert made["parameters"]["required"] == page["parameters"]["required"]
    for name, declared in page["parameters"]["properties"].items():
        assert declared.items() <= made["parameters"]["properties"][name].items()
