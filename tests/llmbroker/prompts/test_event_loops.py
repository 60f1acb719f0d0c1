"""Blocking and async services, from blocking and from async code."""

from __future__ import annotations

import asyncio
import threading

import pytest

import llmbroker
from llmbroker import Kernel, arun_tool_loop
from tests.llmbroker.conftest import MakeBroker, model
from tests.llmbroker.prompts.conftest import Echo, prompt
from tests.support.model_server import ModelServer, ask, say


def test_a_blocking_broker_does_not_hold_up_the_event_loop(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    kernel = Kernel(make_broker(model(server)))
    prompt(kernel, "{{$input}}")
    gate = threading.Event()
    server.script(say("one").behind(gate), say("two").behind(gate))

    async def run() -> list[str]:
        asked = [asyncio.ensure_future(kernel.invoke("matn.x", input=each)) for each in "ab"]
        await asyncio.to_thread(server.wait_for_requests, 2)  # both, though none is answered
        gate.set()
        return sorted(map(str, await asyncio.gather(*asked)))

    assert asyncio.run(run()) == ["one", "two"]


def test_a_blocking_function_does_not_hold_up_the_event_loop(kernel: Kernel) -> None:
    gate = threading.Event()
    kernel.add_function("p", gate.wait, function_name="wait")

    async def run() -> object:
        waiting = asyncio.ensure_future(kernel.invoke("p.wait", timeout=30))
        await asyncio.sleep(0)
        gate.set()
        return (await waiting).value

    assert asyncio.run(run()) is True


def test_blocking_code_may_invoke_while_an_event_loop_runs_if_the_service_blocks(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    kernel = Kernel(make_broker(model(server)))
    prompt(kernel, "x")
    server.script(say("done"))

    async def cell() -> str:
        return str(kernel.invoke_sync("matn.x"))

    assert asyncio.run(cell()) == "done"


def test_over_an_async_service_it_is_told_to_await_instead(kernel: Kernel, echo: Echo) -> None:
    prompt(kernel, "x")

    async def run() -> None:
        kernel.invoke_sync("matn.x")

    with pytest.raises(RuntimeError, match="await the async method"):
        asyncio.run(run())
    assert echo.asked == []


def test_functions_in_threads_come_back_to_the_loop_of_an_async_broker(server: ModelServer) -> None:
    def in_thread(kernel: Kernel) -> str:
        """Asks a prompt."""
        return str(kernel.invoke_sync("matn.x", input="from a thread"))

    async def run() -> list[str]:
        registry = llmbroker.InMemoryRegistry([model(server)])
        async with llmbroker.AsyncBroker(registry, secrets={"KEY": "sk"}) as broker:
            kernel = Kernel(broker)
            kernel.add_function("p", in_thread)
            prompt(kernel, "{{$input}}")
            kernel.add_function("matn", function_name="outer", prompt="<{{p.in_thread}}>")
            first = str(await kernel.invoke("matn.outer"))
            tools, dispatch = kernel.tools("p")
            messages = [{"role": "user", "content": "x"}]
            reply = await arun_tool_loop(broker, messages, tools=tools, dispatch=dispatch)
            return [first, reply.text]

    server.script(
        say("inner"), say("outer"), ask(("p-in_thread", {})), say("inner again"), say("done")
    )
    assert asyncio.run(run()) == ["outer", "done"]
    asked = [each.messages[-1]["content"] for each in server.requests]
    assert asked == ["from a thread", "<inner>", "x", "from a thread", "inner again"]


def test_no_loop_waits_for_itself_however_code_goes_back_and_forth(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    kernel = Kernel(make_broker(model(server)))

    async def stands_still(kernel: Kernel) -> str:
        return str(kernel.invoke_sync("matn.x"))

    def in_thread(kernel: Kernel) -> str:
        return str(kernel.invoke_sync("matn.y"))

    kernel.add_plugin({"stands_still": stands_still, "in_thread": in_thread}, "p")
    kernel.add_plugin(
        {"outer": "{{p.stands_still}}", "x": "{{p.in_thread}}", "y": "innermost"}, "matn"
    )
    server.answer_with(lambda request: say(f"<{request.messages[0]['content']}>"))

    assert str(asyncio.run(kernel.invoke("matn.outer"))) == "<<<innermost>>>"


def test_no_further_function_begins_once_an_invocation_is_cancelled(kernel: Kernel) -> None:
    began, gate, ended = threading.Event(), threading.Event(), threading.Event()
    ran: list[str] = []

    def first() -> None:
        began.set()
        gate.wait(30)
        ended.set()

    kernel.add_plugin({"first": first, "second": lambda: ran.append("second")}, "p")
    prompt(kernel, "{{p.first}} {{p.second}}")

    async def run() -> None:
        work = asyncio.ensure_future(kernel.invoke("matn.x"))
        await asyncio.to_thread(began.wait, 30)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        gate.set()

    asyncio.run(run())
    assert ended.wait(30)
    assert ran == []


def test_a_service_may_be_anything_with_chat() -> None:
    class Plain:
        def chat(self, messages: list[dict[str, str]], tools: object = None) -> object:
            return llmbroker.DirectResult(f"plain {messages[0]['content']}")

    class Later:
        def chat(self, messages: list[dict[str, str]], tools: object = None) -> object:
            async def reply() -> object:
                return llmbroker.DirectResult(f"later {messages[0]['content']}")

            return reply()

    for service, text in ((Plain(), "plain x"), (Later(), "later x")):
        kernel = Kernel(service)
        assert str(kernel.invoke_sync(prompt(kernel, "x"))) == text
