"""What tools know of their call, and what becomes of calls that are cut short."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from llmbroker import (
    Function,
    ToolContext,
    ToolLoop,
    arun_tool_loop,
    run_tool_loop,
)
from llmbroker.tools.workers import run_in_thread
from tests.llmbroker.tools.fakes import ASKED, AsyncModel, Drive, Said, ScriptedModel, texts, wants


class TestContext:
    def test_a_tool_that_asks_knows_its_call(self, drive: Drive) -> None:
        seen: list[ToolContext] = []

        def look(text: str, context: ToolContext) -> str:
            """Looks."""
            seen.append(context)
            return text

        drive(("look", {"text": "a"}), ("look", {"text": "b"}), tools=[look])
        assert {each.scope for each in seen} == {"ann"}
        assert len({each.run_id for each in seen}) == 1
        assert len({each.idempotency_key for each in seen}) == 2
        for each in seen:
            assert each.idempotency_key == f"{each.run_id}:{each.tool_call_id}"

    def test_also_one_of_dispatch(self, drive: Drive) -> None:
        def look(context: ToolContext) -> str:
            return str(context.scope)

        assert texts(drive(("look", "{}"), dispatch={"look": look})) == ["ann"]

    def test_a_model_cannot_give_it(self, drive: Drive) -> None:
        def look(context: ToolContext) -> str:
            """Looks."""
            return "ran"

        (text,) = texts(drive(("look", {"context": {"scope": "bob"}}), tools=[look]))
        assert text == 'Tool look failed: argument "context" is unknown'

    def test_time_left_is_counted_down_and_not_below_zero(self) -> None:
        now = datetime(2026, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - as people write it
        context = ToolContext(deadline=now + timedelta(seconds=3))
        assert context.seconds_left(now) == 3
        assert context.seconds_left(now + timedelta(seconds=9)) == 0
        assert ToolContext().seconds_left() is None


class TestCancellation:
    def test_every_call_gets_a_result_that_says_so(self, gate: threading.Event) -> None:
        async def program() -> ToolLoop:
            begun = asyncio.Event()

            async def hang() -> str:
                """Hangs."""
                begun.set()
                await asyncio.sleep(60)
                return "late"

            def thread() -> str:
                """Hangs too."""
                gate.wait(60)
                return "late"

            loop = ToolLoop(ASKED)
            calls = [("quick", "{}"), ("hang", "{}"), ("thread", "{}"), ("hang", "{}")]
            run = asyncio.create_task(
                arun_tool_loop(
                    AsyncModel(wants(*calls), Said("ok")),
                    loop,
                    tools=[Function.of(hang, sequential=True), thread],
                    dispatch={"quick": lambda: "done"},
                )
            )
            await begun.wait()
            await asyncio.sleep(0.05)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            return loop

        began = time.monotonic()
        loop = asyncio.run(program())
        assert time.monotonic() - began < 5
        asked = [each["id"] for each in loop.messages[1]["tool_calls"]]
        assert [each["tool_call_id"] for each in loop.messages[2:]] == asked
        told = [each["content"] for each in loop.messages[2:]]
        interrupted = "interrupted, because the run was cancelled; it may have taken effect"
        assert told == [
            "done",
            f"Tool hang failed: {interrupted}",
            f"Tool thread failed: {interrupted}",
            "Tool hang failed: not run, because the run was cancelled",
        ]
        assert loop.pending == []

    def test_a_keyboard_interrupt_closes_the_history_of_blocking_code(self) -> None:
        def press() -> str:
            raise KeyboardInterrupt

        loop = ToolLoop(ASKED)
        with pytest.raises(KeyboardInterrupt):
            run_tool_loop(ScriptedModel(wants(("press", "{}"))), loop, dispatch={"press": press})
        assert loop.messages[-1]["content"].startswith("Tool press failed: interrupted")

    def test_a_loop_that_was_cut_short_goes_on(self) -> None:
        loop = ToolLoop(ASKED)
        loop.receive(wants(("a", "{}"), ("b", "{}")))
        loop.record(loop.pending[0], "one")
        loop.interrupt()
        model = ScriptedModel(Said("went on"))
        assert run_tool_loop(model, loop).text == "went on"
        assert model.results[0] == "one"
        assert "interrupted" in model.results[1]


class TestWorkers:
    def test_idle_threads_are_used_again(self) -> None:
        async def program() -> set[int]:
            return {await run_in_thread(threading.get_ident) for _ in range(20)}

        assert len(asyncio.run(program())) < 20

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_forked_process_has_threads_of_its_own(self) -> None:
        def seven() -> int:
            return asyncio.run(run_in_thread(int, "7"))

        assert seven() == 7
        child = os.fork()
        if child == 0:
            os._exit(0 if seven() == 7 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
