"""The calls of one turn: side by side, each within its time, and a result for each."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from datetime import timedelta

import pytest

from llmbroker import (
    Function,
    ToolContext,
    ToolLoop,
    ToolStatus,
    run_tool_loop,
)
from tests.llmbroker.tools.fakes import ASKED, Drive, Said, ScriptedModel, texts, wants


class Meeting:
    """Tools that come back only when as many as expected are there at once."""

    def __init__(self, expected: int) -> None:
        self.barrier = threading.Barrier(expected, timeout=5)

    def arrive(self, who: int) -> str:
        self.barrier.wait()
        return f"{who} met"


class Overlap:
    """Counts how many calls of it run at once."""

    def __init__(self) -> None:
        self.now, self.most, self.order = 0, 0, []
        self.lock = threading.Lock()

    def work(self, who: int) -> str:
        """Work."""
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.order.append(who)
        time.sleep(0.01)
        with self.lock:
            self.now -= 1
        return str(who)


class TestConcurrency:
    def test_plain_functions_of_one_turn_run_at_the_same_time(self, drive: Drive) -> None:
        meeting = Meeting(4)
        results = drive(
            *(("arrive", {"who": who}) for who in range(4)), dispatch={"arrive": meeting.arrive}
        )
        assert texts(results) == ["0 met", "1 met", "2 met", "3 met"]

    def test_coroutine_functions_too_and_beside_plain_ones(self, drive: Drive) -> None:
        met = threading.Event()

        async def early(who: int) -> str:
            """Waits for the other without holding up the loop."""
            while not met.is_set():  # noqa: ASYNC110 - the other is a thread
                await asyncio.sleep(0.001)
            return f"{who} early"

        def late(who: int) -> str:
            """The other."""
            met.set()
            return f"{who} late"

        results = drive(
            ("early", {"who": 1}), ("early", {"who": 2}), ("late", {"who": 3}), tools=[early, late]
        )
        assert texts(results) == ["1 early", "2 early", "3 late"]

    def test_no_more_at_once_than_allowed(self, drive: Drive) -> None:
        overlap = Overlap()
        results = drive(
            *(("work", {"who": who}) for who in range(9)),
            dispatch={"work": overlap.work},
            max_tool_concurrency=3,
        )
        assert texts(results) == [str(who) for who in range(9)]
        assert overlap.most <= 3

    def test_sequential_tools_run_one_after_another_in_the_order_asked(self, drive: Drive) -> None:
        overlap = Overlap()
        alone = Function.of(overlap.work, sequential=True)
        results = drive(*(("work", {"who": who}) for who in range(5)), tools=[alone])
        assert texts(results) == ["0", "1", "2", "3", "4"]
        assert (overlap.most, overlap.order) == (1, [0, 1, 2, 3, 4])

    def test_a_tool_sees_the_context_variables_of_the_run(self, drive: Drive) -> None:
        tenant = contextvars.ContextVar("tenant", default="nobody")
        tenant.set("acme")
        results = drive(("who", "{}"), ("who", "{}"), dispatch={"who": tenant.get})
        assert texts(results) == ["acme", "acme"]

    def test_zero_at_once_is_refused(self) -> None:
        with pytest.raises(ValueError, match="max_tool_concurrency"):
            run_tool_loop(ScriptedModel(Said("ok")), ASKED, max_tool_concurrency=0)


class TestTimeouts:
    def test_a_hung_tool_is_not_waited_for(self, drive: Drive, gate: threading.Event) -> None:
        async def async_hang() -> str:
            """Hangs."""
            await asyncio.sleep(60)
            return "late"

        async def ignores_cancel() -> str:
            """Goes on."""
            for _ in range(50):
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue
            return "late"

        def hang() -> str:
            """Hangs."""
            gate.wait(60)
            return "late"

        def spin() -> str:
            """Uses the processor."""
            until = time.monotonic() + 1
            while time.monotonic() < until:
                pass
            return "late"

        tools = [async_hang, ignores_cancel, hang, spin]
        began = time.monotonic()
        results = drive(
            *((each.__name__, "{}") for each in tools),
            ("quick", "{}"),
            tools=tools,
            dispatch={"quick": lambda: "quick"},
            tool_timeout=0.2,
        )
        assert time.monotonic() - began < 5
        assert [each.status for each in results[:4]] == [ToolStatus.TIMEOUT] * 4
        assert results[0].text == (
            "Tool async_hang failed: timeout, no result within 0.2 s;"
            " it may still have taken effect"
        )
        assert results[4].text == "quick"

    def test_tools_work_on_after_twelve_have_hung(
        self, drive: Drive, gate: threading.Event
    ) -> None:
        hung = Function.of(gate.wait, name="hang", parameters={"type": "object"}, timeout=0.05)
        for _ in range(3):
            results = drive(*[("hang", "{}")] * 4, tools=[hung], max_tool_concurrency=4)
            assert {each.status for each in results} == {ToolStatus.TIMEOUT}
        meeting = Meeting(4)
        results = drive(
            *(("arrive", {"who": who}) for who in range(4)),
            dispatch={"arrive": meeting.arrive},
            max_tool_concurrency=4,
        )
        assert texts(results) == ["0 met", "1 met", "2 met", "3 met"]

    def test_a_late_value_appears_nowhere(self, gate: threading.Event) -> None:
        returned = threading.Event()

        def late() -> str:
            """Comes back when nobody waits."""
            gate.wait(5)
            returned.set()
            return "late"

        def open_gate() -> str:
            """Lets it go."""
            gate.set()
            returned.wait(5)
            return "opened"

        loop = ToolLoop(ASKED)
        model = ScriptedModel(wants(("late", "{}")), wants(("open_gate", "{}")), Said("ok"))
        run_tool_loop(model, loop, tools=[Function.of(late, timeout=0.05), open_gate])
        told = [each["content"] for each in loop.messages if each["role"] == "tool"]
        assert told[0].startswith("Tool late failed: timeout")
        assert told[1:] == ["opened"]

    def test_a_tool_s_own_time_wins_and_the_run_s_deadline_bounds_it(self, drive: Drive) -> None:
        seen: list[ToolContext] = []

        def look(context: ToolContext) -> float | None:
            """Looks at its time."""
            seen.append(context)
            return context.seconds_left()

        look_soon = Function.of(look, name="soon", timeout=5)
        drive(("look", "{}"), ("soon", "{}"), tools=[look, look_soon], tool_timeout=50)
        drive(("look", "{}"), tools=[look], deadline=timedelta(seconds=20), tool_timeout=50)
        drive(("look", "{}"), tools=[look])
        limits = [each.seconds_left() for each in seen]
        assert 40 < limits.pop(0 if (limits[0] or 0) > 10 else 1) <= 50
        assert 0 < limits.pop(0) <= 5
        assert 10 < limits.pop(0) <= 20
        assert limits == [None]
