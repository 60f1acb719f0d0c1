"""Prompts and native functions as tools of a model, side by side."""

from __future__ import annotations

import asyncio
import re

import pytest

import llmbroker
from llmbroker import Kernel, UnknownFunctionError, arun_tool_loop, run_tool_loop
from tests.llmbroker.conftest import MakeBroker, model
from tests.llmbroker.prompts.conftest import Sana, prompt
from tests.support.model_server import ModelServer, Reply, Request, ask, say

QUESTION = [{"role": "user", "content": "What happened today?"}]


def fill(kernel: Kernel) -> Kernel:
    kernel.add_plugin(Sana(), "sana")
    kernel.add_function(
        "matn",
        function_name="xulosala",
        prompt="Sum up what happened on {{sana.kun}}: {{$input}}",
        description="Sums a text up",
    )
    return kernel


def answer(request: Request) -> Reply:
    """A model that wants the date, then a summary, and repeats what it was given."""
    messages = request.messages
    if messages[0]["content"].startswith("Sum up"):
        return say(f"short({messages[0]['content']})")
    results = [each["content"] for each in messages if each["role"] == "tool"]
    calls = [("sana-kun", {"farq": "1"}), ("matn-xulosala", {"input": "long"})]
    return ask(calls[len(results)]) if len(results) < 2 else say(" | ".join(results))


def test_a_model_picks_among_prompts_and_native_functions(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    broker = make_broker(model(server))
    tools, dispatch = fill(Kernel(broker)).tools("sana", "matn")
    server.answer_with(answer)

    reply = run_tool_loop(broker, QUESTION, tools=tools, dispatch=dispatch)

    assert reply.text == "2026-01-06 | short(Sum up what happened on 2026-01-05: long)"
    sent = {each["function"]["name"]: each["function"] for each in server.requests[0].body["tools"]}
    assert sorted(sent) == [
        "matn-xulosala",
        "sana-birga",
        "sana-hafta_kuni",
        "sana-kun",
        "sana-nol",
    ]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in sent)
    assert sent["matn-xulosala"] == {
        "name": "matn-xulosala",
        "description": "Sums a text up",
        "parameters": {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
            "additionalProperties": False,
        },
    }
    prompts = [each for each in server.requests if "tools" not in each.body]
    assert len(prompts) == 1


def test_the_same_over_an_async_broker(server: ModelServer) -> None:
    async def run() -> str:
        registry = llmbroker.InMemoryRegistry([model(server)])
        async with llmbroker.AsyncBroker(registry, secrets={"KEY": "sk"}) as broker:
            tools, dispatch = fill(Kernel(broker)).tools()
            return (await arun_tool_loop(broker, QUESTION, tools=tools, dispatch=dispatch)).text

    server.answer_with(answer)
    assert asyncio.run(run()) == "2026-01-06 | short(Sum up what happened on 2026-01-05: long)"


def test_functions_of_one_turn_run_at_the_same_time_prompts_too(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    broker = make_broker(model(server))
    kernel = Kernel(broker)
    prompt(kernel, "{{$input}}")
    tools, dispatch = kernel.tools()

    def answer(request: Request) -> Reply:
        if "tools" not in request.body:
            server.wait_for_requests(3)  # the two prompts are asked before either is answered
            return say(request.messages[0]["content"].upper())
        results = [each["content"] for each in request.messages if each["role"] == "tool"]
        both = ask(("matn-x", {"input": "a"}), ("matn-x", {"input": "b"}))
        return say("".join(results)) if results else both

    server.answer_with(answer)
    assert run_tool_loop(broker, QUESTION, tools=tools, dispatch=dispatch).text == "AB"


def test_what_goes_wrong_inside_a_prompt_is_told_to_the_model(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    broker = make_broker(model(server))
    kernel = Kernel(broker)
    prompt(kernel, "{{sana.kun}} {{$input}}")
    tools, dispatch = kernel.tools()
    server.script(ask(("matn-x", {})), ask(("matn-x", {"input": "a"})), say("sorry"))

    assert run_tool_loop(broker, QUESTION, tools=tools, dispatch=dispatch).text == "sorry"

    told = [each["content"] for each in server.requests[-1].messages if each["role"] == "tool"]
    assert "input" in told[0]
    assert told[1].startswith("Tool matn-x failed: {{sana.kun}} (line 1, column 3): there is no")


def test_tools_are_chosen_by_plugin_or_by_function(kernel: Kernel) -> None:
    prompt(kernel, "x")
    assert list(kernel.tools("matn", "sana.kun", "kun").dispatch) == ["matn-x", "sana-kun"]
    assert len(kernel.tools().tools) == 5
    with pytest.raises(UnknownFunctionError, match="'oy'"):
        kernel.tools("oy")


def test_a_prompt_may_have_tools_of_its_own(server: ModelServer, make_broker: MakeBroker) -> None:
    kernel = fill(Kernel(make_broker(model(server)), chat_options={"trace_id": "t"}))
    function = kernel.add_function(
        "matn", function_name="javob", prompt="{{$input}}", tools=["sana.kun"]
    )
    server.script(ask(("sana-kun", {"farq": 2})), say("It is the 7th."))

    result = kernel.invoke_sync(function, input="What day is it?")

    assert str(result) == "It is the 7th."
    assert result.reply.operation == "matn.javob"
    assert [each["content"] for each in server.requests[-1].messages] == [
        "What day is it?",
        None,
        "2026-01-07",
    ]
    assert len(server.requests[0].body["tools"]) == 1


def test_prompts_that_are_their_own_tools_are_stopped(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    kernel = Kernel(make_broker(model(server)))
    kernel.add_function("m", function_name="again", prompt="x", tools=["m"])
    server.answer_with(
        lambda request: (
            say("enough")
            if any(each["role"] == "tool" for each in request.messages)
            else ask(("m-again", {}))
        )
    )
    assert str(kernel.invoke_sync("m.again")) == "enough"
    told = [
        each["content"]
        for request in server.requests
        for each in request.messages
        if each["role"] == "tool"
    ]
    assert len(server.requests) == 16
    assert "more than 8 deep" in told[0]
