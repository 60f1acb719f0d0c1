"""One broker across event loops, threads and forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import llmbroker
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, say


def test_an_async_broker_works_in_one_event_loop_after_another(server: ModelServer) -> None:
    server.answer_with(lambda request: say("ok"))
    broker = llmbroker.AsyncBroker(
        llmbroker.InMemoryRegistry([model(server)]), secrets={"KEY": "sk-1"}
    )

    async def call() -> str:
        reply = await broker.ask("hello")
        return reply.text

    assert [asyncio.run(call()), asyncio.run(call())] == ["ok", "ok"]

    async def last() -> None:
        await call()
        await broker.aclose()

    asyncio.run(last())


def test_many_threads_share_one_blocking_broker(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    server.answer_with(lambda request: say(request.messages[0]["content"]))
    broker = make_broker(model(server))
    answers: dict[int, str] = {}

    def call(number: int) -> None:
        answers[number] = broker.ask(str(number)).text

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == {number: str(number) for number in range(20)}


def test_a_broker_made_and_used_before_a_fork_works_in_the_child(server: ModelServer) -> None:
    server.answer_with(lambda request: say("ok"))
    program = f"""
        import os, llmbroker
        registry = llmbroker.InMemoryRegistry(
            [llmbroker.LLMConfig("m", {server.base_url!r}, "m", "KEY")]
        )
        broker = llmbroker.Broker(registry, secrets={{"KEY": "sk-1"}})
        assert broker.ask("before").text == "ok"
        child = os.fork()
        if child == 0:
            os._exit(0 if broker.ask("in the child").text == "ok" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert broker.ask("after").text == "ok"
        broker.close()
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_that_forgets_to_close_ends_quietly(server: ModelServer) -> None:
    server.answer_with(lambda request: say("ok"))
    program = f"""
        import llmbroker
        registry = llmbroker.InMemoryRegistry(
            [llmbroker.LLMConfig("m", {server.base_url!r}, "m", "")]
        )
        print(llmbroker.Broker(registry).ask("hello").text)
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=False,
    )
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_a_blocking_broker_on_its_own_loop_says_what_to_do(
    server: ModelServer, make_broker: MakeBroker
) -> None:
    broker = make_broker(model(server))

    async def misuse() -> None:
        broker.ask("hello")

    with pytest.raises(RuntimeError, match="AsyncBroker"):
        broker._loop.run(misuse())


def test_async_tools_and_plain_tools_mix_in_one_turn(server: ModelServer) -> None:
    from tests.support.model_server import ask

    server.script(ask(("plain", {}), ("coroutine", {})), say("done"))

    async def coroutine() -> str:
        await asyncio.sleep(0)
        return "from a task"

    async def program() -> str:
        registry = llmbroker.InMemoryRegistry([model(server)])
        async with llmbroker.AsyncBroker(registry, secrets={"KEY": "k"}) as broker:
            reply = await llmbroker.arun_tool_loop(
                broker,
                [{"role": "user", "content": "go"}],
                dispatch={"plain": lambda: "from a thread", "coroutine": coroutine},
            )
            return reply.text

    assert asyncio.run(program()) == "done"
    told = [each["content"] for each in server.requests[-1].messages if each["role"] == "tool"]
    assert told == ["from a thread", "from a task"]
