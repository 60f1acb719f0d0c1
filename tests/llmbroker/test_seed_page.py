"""The first seed document ("Инструменты и агенты"), sentence by sentence."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest

import llmbroker
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, ask, fail, say


def get_weather(city: str) -> str:
    return f"В {city} сейчас 20°C"


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Текущая погода в городе",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]
QUESTION = [{"role": "user", "content": "Какая погода в Москве?"}]
MOSCOW = ask(("get_weather", {"city": "Москве"}), usage=(100, 20))


def tool_texts(server: ModelServer) -> list[str]:
    """What the last request told the model about its tool calls."""
    return [each["content"] for each in server.requests[-1].messages if each["role"] == "tool"]


def test_the_page_s_first_program_prints_the_answer_and_who_gave_it(
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"BASE_URL": server.base_url, "MODEL": "m", "API_KEY": "sk-1"}.items():
        monkeypatch.setenv(f"LLMBROKER_{name}", value)
    server.script(MOSCOW, say("В Москве 20°C."))

    broker = llmbroker.Broker()
    reply = llmbroker.run_tool_loop(
        broker,
        [{"role": "user", "content": "Какая погода в Москве?"}],
        tools=TOOLS,
        dispatch={"get_weather": get_weather},
    )
    print(reply.text, "— ответила", reply.llm_name)  # noqa: T201 - the page's
    broker.close()

    assert capsys.readouterr().out == f"В Москве 20°C. — ответила {reply.llm_name}\n"
    assert reply.llm_name
    assert tool_texts(server) == ["В Москве сейчас 20°C"]
    assert server.requests[0].body["tools"] == TOOLS


def test_usage_is_that_of_the_last_call_and_the_journal_holds_every_call(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW, say("Тепло.", usage=(130, 7)))
    broker = make_broker(model(server))

    reply = llmbroker.run_tool_loop(
        broker, QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather}, trace_id="t-1"
    )

    assert reply.usage == llmbroker.Usage(130, 7, 137)
    rows = broker.calls(trace_id="t-1")
    assert [row.usage.prompt_tokens for row in rows if row.usage] == [130, 100]
    assert rows[0].id == reply.call_id
    assert sum(row.usage.total_tokens for row in rows if row.usage) == 257


def test_the_async_loop_gives_the_same(server: ModelServer) -> None:
    server.script(MOSCOW, say("Тепло."))

    async def program() -> llmbroker.AsyncReply:
        registry = llmbroker.InMemoryRegistry([model(server)])
        async with llmbroker.AsyncBroker(registry, secrets={"KEY": "sk-1"}) as broker:
            return await llmbroker.arun_tool_loop(
                broker, QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather}
            )

    assert asyncio.run(program()).text == "Тепло."
    assert tool_texts(server) == ["В Москве сейчас 20°C"]


def test_eight_calls_are_the_limit_unless_told_otherwise(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: MOSCOW)
    broker = make_broker(model(server))

    with pytest.raises(llmbroker.ToolLoopLimitError, match="max_steps=8") as caught:
        llmbroker.run_tool_loop(
            broker, QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather}
        )

    assert len(server.requests) == 8
    assert caught.value.messages[-1]["role"] == "tool"
    assert caught.value.run_usage == llmbroker.Usage(800, 160, 960)

    with pytest.raises(llmbroker.ToolLoopLimitError):
        llmbroker.run_tool_loop(broker, QUESTION, tools=TOOLS, dispatch={}, max_steps=2)
    assert len(server.requests) == 10


def test_operation_trace_and_wait_go_to_every_call(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW, say("Тепло."))
    broker = make_broker(model(server))

    llmbroker.run_tool_loop(
        broker,
        QUESTION,
        tools=TOOLS,
        dispatch={"get_weather": get_weather},
        operation="weather-agent",
        trace_id="запрос-7",
        wait=5,
    )

    rows = broker.calls()
    assert [(row.operation, row.trace_id) for row in rows] == [("weather-agent", "запрос-7")] * 2


def test_without_an_operation_all_calls_are_of_one_kind(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW, say("Тепло."))
    broker = make_broker(model(server))

    llmbroker.run_tool_loop(broker, QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather})

    assert [row.operation for row in broker.calls()] == [None, None]


def test_a_rating_by_trace_rates_the_last_successful_call_only(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW, say("Тепло."), fail(400, "no"))
    broker = make_broker(model(server))
    llmbroker.run_tool_loop(
        broker, QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather}, trace_id="t-2"
    )
    with pytest.raises(llmbroker.RequestRefusedError):
        broker.chat(QUESTION, trace_id="t-2")

    broker.record_quality(0.9, trace_id="t-2")

    failed, last, first = broker.calls(trace_id="t-2")
    assert (failed.score, last.score, first.score) == (None, 0.9, None)

    broker.record_quality(0.4, call_id=first.id)
    assert broker.calls(call_id=first.id)[0].score == 0.4


def test_a_direct_client_has_every_call_answered_by_the_one_model(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    opus = model(server, "claude", alias="opus")
    server.script(MOSCOW, say("Тепло.", usage=(130, 7)))
    broker = make_broker(direct=[opus])

    reply = llmbroker.run_tool_loop(
        broker.direct("opus"),
        QUESTION,
        tools=TOOLS,
        dispatch={"get_weather": get_weather},
        params={"temperature": 0},
    )

    assert (reply.text, reply.usage) == ("Тепло.", llmbroker.Usage(130, 7, 137))
    assert not hasattr(reply, "llm_name")
    assert not hasattr(reply, "call_id")
    assert broker.calls() == []
    assert [request.body["temperature"] for request in server.requests] == [0, 0]
    assert {request.body["model"] for request in server.requests} == {"claude-1"}


def test_a_direct_client_never_moves_to_another_model(
    server: ModelServer, other_server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(fail(503, "overloaded"))
    broker = make_broker(model(other_server, "spare"), direct=[model(server, "one")])

    with pytest.raises(llmbroker.RateLimitError) as caught:
        llmbroker.run_tool_loop(broker.direct(name="one"), QUESTION, tools=TOOLS, dispatch={})

    assert caught.value.status == 503
    assert other_server.requests == []


@pytest.mark.parametrize("knob", [{"operation": "weather"}, {"trace_id": "t"}, {"wait": 5}])
def test_a_direct_client_knows_no_knobs_of_the_pool(
    server: ModelServer, make_broker: MakeBroker, knob: dict[str, object]
) -> None:
    client = make_broker(direct=[model(server, "one")]).direct(name="one")

    with pytest.raises(TypeError, match=next(iter(knob))):
        llmbroker.run_tool_loop(client, QUESTION, **knob)
    assert server.requests == []


def test_a_direct_client_s_timeout_bounds_each_call(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW, say("Тепло.").after(5.0))
    client = make_broker(direct=[model(server, "one")]).direct(name="one")

    with pytest.raises(llmbroker.LLMTimeoutError):
        llmbroker.run_tool_loop(
            client, QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather}, timeout=0.3
        )
    assert len(server.requests) == 2


def test_the_catalog_s_tool_params_are_sent_with_tools_every_round_and_the_caller_s_win(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    gpt = model(server, "gpt", tool_params={"reasoning_effort": "none", "top_p": 0.5})
    server.script(MOSCOW, say("Тепло."), say("Да."))
    client = make_broker(direct=[gpt]).direct(name="gpt")

    llmbroker.run_tool_loop(
        client,
        QUESTION,
        tools=TOOLS,
        dispatch={"get_weather": get_weather},
        params={"top_p": 0.9},
    )
    client.chat(QUESTION)

    bodies = [request.body for request in server.requests]
    assert [body.get("reasoning_effort") for body in bodies] == ["none", "none", None]
    assert [body.get("top_p") for body in bodies] == [0.9, 0.9, None]


def test_a_tool_s_exception_is_told_to_the_model_and_never_raised(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    def broken(city: str) -> str:
        raise LookupError(f"нет города {city}")

    server.script(MOSCOW, say("Не знаю."))

    reply = llmbroker.run_tool_loop(
        make_broker(model(server)), QUESTION, tools=TOOLS, dispatch={"get_weather": broken}
    )

    assert reply.text == "Не знаю."
    assert tool_texts(server) == ["Tool get_weather failed: нет города Москве"]


def test_after_a_failure_the_model_may_call_again_with_other_arguments(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    def picky(city: str) -> str:
        if city != "Москва":
            raise LookupError(f"нет города {city}")
        return "20°C"

    again = ask(("get_weather", {"city": "Москва"}), ids=("call_again",))
    server.script(MOSCOW, again, say("Тепло."))

    llmbroker.run_tool_loop(
        make_broker(model(server)), QUESTION, tools=TOOLS, dispatch={"get_weather": picky}
    )

    assert tool_texts(server) == ["Tool get_weather failed: нет города Москве", "20°C"]


def test_an_error_that_the_tool_tells_as_its_result_costs_a_step_and_ends_nothing(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW, say("Не знаю."))

    reply = llmbroker.run_tool_loop(
        make_broker(model(server)),
        QUESTION,
        tools=TOOLS,
        dispatch={"get_weather": lambda city: "нет данных"},
        max_steps=2,
    )

    assert reply.text == "Не знаю."
    assert tool_texts(server) == ["нет данных"]


def test_an_unknown_tool_is_told_to_the_model(server: ModelServer, make_broker: MakeBroker) -> None:
    server.script(ask(("get_wether", {})), say("Не знаю."))

    llmbroker.run_tool_loop(
        make_broker(model(server)), QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather}
    )

    (text,) = tool_texts(server)
    assert text.startswith("Unknown tool get_wether")
    assert "get_weather" in text


def test_a_result_that_is_no_text_passes_through_str(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(ask(("n", {}), ("d", {}), ("z", {})), say("ok"))

    llmbroker.run_tool_loop(
        make_broker(model(server)),
        QUESTION,
        dispatch={"n": lambda: 21.5, "d": lambda: {"a": [1]}, "z": lambda: 0},
    )

    assert tool_texts(server) == ["21.5", "{'a': [1]}", "0"]


@pytest.mark.parametrize("arguments", ["[1]", '"text"', "{broken", "null"])
def test_arguments_that_are_no_object_are_told_to_the_model_and_nothing_runs(
    server: ModelServer, make_broker: MakeBroker, arguments: str
) -> None:
    called: list[object] = []
    server.script(ask(("get_weather", arguments)), say("ok"))

    llmbroker.run_tool_loop(
        make_broker(model(server)),
        QUESTION,
        dispatch={"get_weather": lambda **given: called.append(given)},
    )

    (text,) = tool_texts(server)
    assert text.startswith("Tool get_weather failed: the arguments are")
    assert called == []
    replayed = server.requests[-1].messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(replayed) == {}


def test_chat_with_tools_leaves_the_loop_to_the_host(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW)

    reply = make_broker(model(server)).chat(QUESTION, tools=TOOLS)

    assert reply.text == ""
    assert reply.tool_calls is not None
    assert reply.tool_calls[0]["function"]["name"] == "get_weather"


def test_a_scoped_caller_pays_with_its_scope_s_key_and_stamps_its_rows(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(
        lambda request: say("ok") if request.messages[-1]["role"] == "tool" else MOSCOW
    )
    broker = make_broker(model(server))

    for caller in (broker.for_scope("ann"), broker.for_scope("bob"), broker):
        llmbroker.run_tool_loop(
            caller, QUESTION, tools=TOOLS, dispatch={"get_weather": get_weather}
        )

    paid = [request.authorization for request in server.requests]
    assert paid == ["Bearer sk-ann"] * 2 + ["Bearer sk-everybody"] * 4
    assert [row.scope for row in reversed(broker.calls())] == ["ann"] * 2 + ["bob"] * 2 + [None] * 2
    assert [row.scope for row in broker.for_scope("ann").calls()] == ["ann"] * 2
    sources = [row.key_source for row in reversed(broker.calls())]
    assert sources[:3:2] == [llmbroker.KeySource.OWN, llmbroker.KeySource.INSTALLATION]


def test_the_caller_s_messages_are_never_changed(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.script(MOSCOW, say("Тепло."))
    messages = copy.deepcopy(QUESTION)

    llmbroker.run_tool_loop(
        make_broker(model(server)), messages, tools=TOOLS, dispatch={"get_weather": get_weather}
    )

    assert messages == QUESTION


def test_the_page_s_catalog_alias_needs_only_a_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")

    with llmbroker.Broker(direct=["opus"]) as broker:
        assert broker.direct("opus") is not None
        with pytest.raises(llmbroker.UnknownModelError, match="opus"):
            broker.direct("opsu")

    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with llmbroker.Broker(direct=["opus"]) as broker, pytest.raises(llmbroker.MissingKeyError):
        broker.direct("opus")
