"""The practice model over real HTTP: what it asks for, and that it says what it is."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker_project.local.practice_model.questions import Kind, Want, wants_of
from broker_project.local.practice_model.server import Server

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str, description: str, required: tuple[str, ...] = (), **properties: object) -> Any:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TEXT = {"type": "string"}
TODAY = tool("today", "The current date in a time zone.", timezone=TEXT)
WEATHER = tool("weather", "The weather in a city now.", ("city",), city=TEXT)
CALCULATE = tool("calculate", "Evaluate an expression.", ("expression",), expression=TEXT)
TOOLS = [TODAY, WEATHER, CALCULATE]

SEED = (
    "Bugun qaysi kun va Toshkentda ob-havo qanday? "
    "Agar 30 darajadan issiq bo'lsa, 30 * 1.8 + 32 ni hisobla."
)
RESULTS = {"today": "2026-11-30", "weather": "12°C, bulutli", "calculate": "86.0"}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.base_url
        server.shutdown()
        thread.join()


def post(base_url: str, body: object) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{base_url}/chat/completions", data)  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
        return json.load(response)


def message_for(base_url: str, messages: list[Any], **body: object) -> Any:
    reply = post(base_url, {"model": "practice-model", "messages": messages, **body})
    return reply["choices"][0]["message"]


def converse(
    base_url: str, question: str, tools: list[Any], results: Mapping[str, str] = RESULTS
) -> tuple[list[tuple[str, Any]], str]:
    """Play the loop: the calls that were asked for, and the final text."""
    messages: list[Any] = [{"role": "user", "content": question}]
    calls: list[tuple[str, Any]] = []
    for _ in range(10):
        message = message_for(base_url, messages, tools=tools)
        if not message.get("tool_calls"):
            return calls, message["content"]
        (call,) = message["tool_calls"]
        name = call["function"]["name"]
        calls.append((name, json.loads(call["function"]["arguments"])))
        messages += [
            message,
            {"role": "tool", "tool_call_id": call["id"], "content": results[name]},
        ]
    raise AssertionError(f"no end to it: {calls}")


def test_the_seed_task_asks_for_three_tools_one_after_another(base_url: str) -> None:
    calls, text = converse(base_url, SEED, TOOLS)

    assert calls == [
        ("today", {"timezone": "Asia/Tashkent"}),
        ("weather", {"city": "Toshkent"}),
        ("calculate", {"expression": "30 * 1.8 + 32"}),
    ]
    assert text == (
        "Practice model: Sana: 2026-11-30. Toshkent shahrida ob-havo: 12°C, bulutli. "
        "30 * 1.8 + 32 = 86.0."
    )


@pytest.mark.parametrize(
    ("question", "zone"),
    [
        ("What day is it in Tashkent, and what is 30 * 1.8 + 32?", {"timezone": "Asia/Tashkent"}),
        ("What day is it?", {}),
    ],
)
def test_the_date_is_asked_for_where_the_question_is_about(
    base_url: str, question: str, zone: dict[str, str]
) -> None:
    assert converse(base_url, question, TOOLS)[0][0] == ("today", zone)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What's the weather in London?", "Weather in London: 12°C, bulutli."),
        ("Какая погода в Москве?", "Погода, Москва: 12°C, bulutli."),
        ("Samarqandda ob-havo qanday?", "Samarqand shahrida ob-havo: 12°C, bulutli."),
    ],
)
def test_it_answers_in_the_language_of_the_question(
    base_url: str, question: str, answer: str
) -> None:
    assert converse(base_url, question, TOOLS)[1] == f"Practice model: {answer}"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("Tool weather failed: no route to the service", "failed (Tool weather failed: no route"),
        ("Unknown tool weather", "failed (Unknown tool weather)"),
        ('{"error": "timeout"}', "failed (error: timeout)"),
    ],
)
def test_a_failed_tool_is_called_a_failed_tool_and_the_rest_is_answered(
    base_url: str, result: str, said: str
) -> None:
    question = "What is the weather in London, and what is 6 * 7?"
    calls, text = converse(base_url, question, TOOLS, {**RESULTS, "weather": result})

    assert [name for name, _ in calls] == ["weather", "calculate"]
    assert said in text
    assert "6 * 7 = 86.0" in text


def test_the_tool_that_fits_is_found_by_description_and_schema(base_url: str) -> None:
    tools = [
        tool("f1", "Matematik ifodani hisoblaydi", ("ifoda",), ifoda=TEXT),
        tool("f2", "Текущая погода", ("units", "where"), units={"enum": ["C", "F"]}, where=TEXT),
        tool("f3", "Bugungi sanani qaytaradi"),
    ]
    results = {"f1": "4", "f2": "+3", "f3": "30.11.2026"}
    calls, _ = converse(base_url, "Bugun qaysi kun? Parijda ob-havo? 2+2", tools, results)

    assert calls == [
        ("f3", {}),
        ("f2", {"units": "C", "where": "Parij"}),
        ("f1", {"ifoda": "2+2"}),
    ]


def test_without_a_fitting_tool_it_says_so(base_url: str) -> None:
    calls, text = converse(base_url, "What is the weather in London?", [CALCULATE])

    assert calls == []
    assert text == "Practice model: Weather in London: I have no tool for this."


@pytest.mark.parametrize("question", ["Tell me a story", "Расскажи сказку", "Salom, ertak ayt", ""])
def test_a_question_beyond_it_is_declined_not_invented(base_url: str, question: str) -> None:
    calls, text = converse(base_url, question, TOOLS)

    assert calls == []
    assert text.startswith("Practice model: ")


def test_a_new_question_in_the_same_conversation_gets_new_calls_with_new_ids(base_url: str) -> None:
    messages: list[Any] = [{"role": "user", "content": "What is 2+2?"}]
    first = message_for(base_url, messages, tools=TOOLS)
    first_id = first["tool_calls"][0]["id"]
    messages += [
        first,
        {"role": "tool", "tool_call_id": first_id, "content": "4"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": [{"type": "text", "text": "And 2+2 again?"}]},
    ]
    second = message_for(base_url, messages, tools=TOOLS)

    assert second["tool_calls"][0]["id"] != first_id


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("none", None),
        ("required", "today"),
        ({"type": "function", "function": {"name": "weather"}}, "weather"),
    ],
)
def test_tool_choice_is_obeyed(base_url: str, choice: object, called: str | None) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    message = message_for(base_url, messages, tools=TOOLS, tool_choice=choice)

    calls = message.get("tool_calls") or [{"function": {"name": None}}]
    assert calls[0]["function"]["name"] == called


def streamed(base_url: str, **body: object) -> list[Any]:
    data = json.dumps({"model": "practice-model", "stream": True, **body}).encode()
    request = urllib.request.Request(f"{base_url}/chat/completions", data)  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
        assert response.headers["Content-Type"] == "text/event-stream"
        events = response.read().decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def test_a_stream_carries_the_same_answer_and_usage(base_url: str) -> None:
    asked = {"messages": [{"role": "user", "content": "Salom"}], "tools": TOOLS}
    whole = post(base_url, {"model": "practice-model", **asked})

    *chunks, last = streamed(base_url, **asked, stream_options={"include_usage": True})

    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert (last["choices"], last["usage"]) == ([], whole["usage"])


def test_a_stream_carries_a_tool_call_in_pieces(base_url: str) -> None:
    chunks = streamed(base_url, messages=[{"role": "user", "content": SEED}], tools=[CALCULATE])

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["function"]["name"] == "calculate"
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert json.loads(arguments) == {"expression": "30 * 1.8 + 32"}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_usage_counts_bytes_by_one_rule(base_url: str) -> None:
    asked = {"model": "practice-model", "messages": [{"role": "user", "content": "Привет"}]}

    usage = post(base_url, asked)["usage"]

    assert usage == post(base_url, asked)["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_it_lists_itself_as_a_practice_model(base_url: str) -> None:
    with urllib.request.urlopen(f"{base_url}/models", timeout=10) as response:  # noqa: S310
        assert [model["id"] for model in json.load(response)["data"]] == ["practice-model"]


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"{", 400, None),
        (b"[]", 400, None),
        ({"model": "practice-model", "messages": []}, 400, "messages"),
        ({"model": "practice-model", "messages": [{"role": "user"}], "tools": "x"}, 400, "tools"),
        ({"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]}, 404, "model"),
    ],
)
def test_a_bad_request_gets_an_error_in_openais_shape(
    base_url: str, body: object, status: int, param: str | None
) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(base_url, body)

    with caught.value as response:
        assert response.code == status
        assert json.load(response)["error"]["param"] == param


def test_the_command_names_its_url_and_ends_on_sigterm() -> None:
    command = [sys.executable, "-m", "broker_project.local.practice_model", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout
        line = process.stdout.readline()
        base_url = line.removeprefix("Practice model on ").strip()
        text = message_for(base_url, [{"role": "user", "content": "Salom"}])["content"]
        process.terminate()
        assert process.wait(10) == 0

    assert text.startswith("Practice model: ")


TODAYS_DATE = Want(Kind.DATE)


def weather(*cities: str) -> list[Want]:
    return [Want(Kind.WEATHER, city) for city in cities]


def value_of(*expressions: str) -> list[Want]:
    return [Want(Kind.ARITHMETIC, expression) for expression in expressions]


@pytest.mark.parametrize(
    ("question", "wants"),
    [
        ("What is today's date?", [TODAYS_DATE]),
        ("Bugungi sana nechanchi?", [TODAYS_DATE]),
        ("Какой сегодня день недели?", [TODAYS_DATE]),
        ("What's the weather in Paris today?", weather("Paris")),
        ("London weather please", weather("London")),
        ("weather in london", weather("London")),
        ("What's the weather like in New York and London?", weather("New York", "London")),
        ("Какая сегодня погода в Санкт-Петербурге?", weather("Санкт-Петербург")),
        ("погода в казани", weather("Казань")),
        ("Погода в Ташкенте и Сочи?", weather("Ташкент", "Сочи")),
        ("toshkentda ob-havo", weather("Toshkent")),
        ("Samarqand va Buxoroda ob-havo qanday?", weather("Samarqand", "Buxoro")),
        ("Toshkent shahrida ob-havo qanday?", weather("Toshkent")),
        ("Bugun ob-havo qanday?", weather("")),
        ("Сколько будет 12,5 × 4?", value_of("12.5 * 4")),
        ("How much (2 + 3) × 4 ÷ 5 is? And 2^10", value_of("(2 + 3) * 4 / 5", "2**10")),
        ("What is 5-7?", value_of("5-7")),
        ("Open 24/7 for 5-7 days since 2026-11-30", []),
    ],
)
def test_questions_are_read(question: str, wants: list[Want]) -> None:
    assert wants_of(question) == wants
