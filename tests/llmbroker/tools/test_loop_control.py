"""What ends a loop, and what may still be had from it then."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import llmbroker
from llmbroker import (
    StopReason,
    ToolLoop,
    ToolLoopLimitError,
    ToolLoopStoppedError,
    ToolStatus,
    Usage,
    run_tool_loop,
)
from tests.llmbroker.tools.fakes import ASKED, Clock, Said, ScriptedModel, wants

READ_A = [("read", '{"path":"a","mode":"r"}'), ("read", '{"mode": "r", "path": "a"}')]


def step(loop: ToolLoop, *calls: tuple[str, object], result: str = "[]", **reply: Any) -> None:
    """One turn of the loop."""
    for call in loop.receive(wants(*calls, **reply)):
        loop.record(call, result)


def stopped(run: Any) -> ToolLoopStoppedError:
    with pytest.raises(ToolLoopLimitError) as caught:
        run()
    assert isinstance(caught.value, ToolLoopStoppedError)
    return caught.value


class TestRepeats:
    def test_the_third_time_is_warned_of_and_the_fourth_is_the_last(self) -> None:
        loop = ToolLoop(ASKED, max_steps=50)
        for turn in range(4):
            assert loop.stop is None
            step(loop, READ_A[turn % 2])

        texts = [each["content"] for each in loop.messages if each["role"] == "tool"]
        assert texts[:2] == ["[]", "[]"]
        assert texts[2].startswith("[]\n[This very call has now given this very result 3 times")
        assert loop.exhausted
        assert loop.limit_error().reason == "loop"

    def test_failed_and_unknown_calls_count_as_well(self) -> None:
        def broken() -> str:
            raise OSError("no such file")

        model = ScriptedModel(wants(("read", "{}")))
        error = stopped(
            lambda: run_tool_loop(
                model, ASKED, dispatch={"read": broken}, max_repeats=4, max_steps=50
            )
        )
        assert error.reason is StopReason.LOOP
        assert len(model.sent) == 4

    def test_polling_is_no_loop(self) -> None:
        loop = ToolLoop(ASKED, max_steps=50)
        for result in ("10%", "40%", "80%", "90%", "99%", "done"):
            step(loop, ("get_status", "{}"), result=result)
        assert not loop.exhausted

    def test_alternating_calls_end_at_the_limit_of_steps(self) -> None:
        loop = ToolLoop(ASKED, max_steps=6)
        for turn in range(6):
            step(loop, (f"read_{turn % 2}", "{}"))
        assert loop.limit_error().reason == "max_steps"

    def test_the_same_call_twice_in_one_turn_is_one_turn(self) -> None:
        loop = ToolLoop(ASKED, max_steps=50)
        for turn in range(4):
            assert not loop.exhausted, turn
            step(loop, *READ_A)
        assert loop.limit_error().reason == "loop"

    def test_the_same_calls_side_by_side_are_each_noticed(self) -> None:
        loop = ToolLoop(ASKED, max_steps=50)
        for turn in range(4):
            step(loop, ("a", "{}"), ("b", f'{{"turn": {turn}}}'))
        assert loop.limit_error().reason == "loop"

    def test_run_tool_loop_goes_on_to_max_steps_unless_told_otherwise(self) -> None:
        model = ScriptedModel(wants(("read", "{}")))
        error = stopped(lambda: run_tool_loop(model, ASKED, dispatch={"read": lambda: "[]"}))
        assert (error.reason, len(model.sent)) == ("max_steps", 8)


class TestLimits:
    def test_tokens(self) -> None:
        model = ScriptedModel(wants(("n", "{}"), usage=Usage(30, 20, 50)))
        error = stopped(
            lambda: run_tool_loop(model, ASKED, dispatch={"n": lambda: 1}, max_tokens=100)
        )
        assert (error.reason, len(model.sent)) == ("max_tokens", 2)
        assert error.run_usage == Usage(60, 40, 100)
        assert error.messages[-1]["role"] == "tool"

    def test_money_by_what_the_caller_says_a_reply_has_cost(self) -> None:
        model = ScriptedModel(wants(("n", "{}")))
        prices = iter([0.2, None, 0.4])
        error = stopped(
            lambda: run_tool_loop(
                model,
                ASKED,
                dispatch={"n": lambda: 1},
                max_cost=0.5,
                cost_of=lambda reply: next(prices),
            )
        )
        assert (error.reason, len(model.sent)) == ("budget", 3)
        with pytest.raises(ValueError, match="cost_of"):
            ToolLoop(ASKED, max_cost=1.0)

    def test_time_by_the_loop_s_own_clock(self) -> None:
        clock = Clock()
        loop = ToolLoop(ASKED, deadline=timedelta(seconds=60), clock=clock)
        step(loop, ("n", "{}"))
        assert (loop.seconds_left, loop.exhausted) == (60, False)
        clock.now += 61
        assert (loop.seconds_left, loop.exhausted) == (0, True)
        assert loop.limit_error().reason == "deadline"

    def test_a_deadline_has_a_time_zone(self) -> None:
        assert ToolLoop(ASKED, deadline=datetime(2026, 1, 1, tzinfo=UTC)).seconds_left == 0
        with pytest.raises(ValueError, match="time zone"):
            ToolLoop(ASKED, deadline=datetime(2026, 1, 1))  # noqa: DTZ001 - refused for it

    def test_tools_that_do_not_exist(self) -> None:
        model = ScriptedModel(*(wants((f"nope_{turn}", "{}")) for turn in range(9)))
        error = stopped(
            lambda: run_tool_loop(model, ASKED, dispatch={"real": lambda: 1}, max_steps=50)
        )
        assert (error.reason, len(model.sent)) == ("unknown_tool", 5)

    def test_calls_beyond_thirty_two_in_one_turn_are_not_run(self) -> None:
        ran: list[int] = []

        def n(number: int) -> None:
            ran.append(number)

        model = ScriptedModel(
            wants(*(("n", {"number": number}) for number in range(40))), Said("ok")
        )
        run_tool_loop(model, ASKED, dispatch={"n": n})
        assert sorted(ran) == list(range(32))
        assert model.results[32:] == ["Tool n failed: at most 32 tools are run in one turn"] * 8

    @pytest.mark.parametrize("name", ["max_steps", "max_tokens", "max_repeats"])
    def test_limits_that_make_no_sense_are_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match=name):
            ToolLoop(ASKED, **{name: 0})


class TestToolChoice:
    TOOLS = ({"type": "function", "function": {"name": "today", "parameters": {"type": "object"}}},)

    def run(self, model: ScriptedModel, **settings: Any) -> Any:
        return run_tool_loop(
            model, ASKED, tools=self.TOOLS, dispatch={"today": lambda: "Monday"}, **settings
        )

    def test_a_forced_call_is_forced_once_or_there_would_be_no_answer(self) -> None:
        for choice, sent in {
            "required": "required",
            "today": {"type": "function", "function": {"name": "today"}},
        }.items():
            model = ScriptedModel(wants(("today", "{}")), Said("ok"))
            self.run(model, tool_choice=choice, params={"temperature": 0})
            assert model.params == [{"temperature": 0, "tool_choice": sent}, {"temperature": 0}]

    def test_auto_and_none_are_sent_every_time_and_nothing_unless_asked(self) -> None:
        model = ScriptedModel(wants(("today", "{}")), Said("ok"))
        self.run(model, tool_choice="none")
        assert model.params == [{"tool_choice": "none"}] * 2
        self.run(model)
        assert model.params[2:] == [None]

    def test_a_name_that_no_tool_has_is_refused(self) -> None:
        with pytest.raises(ValueError, match="tool_choice names 'tody'"):
            self.run(ScriptedModel(Said("ok")), tool_choice="tody")


class TestFinalAnswer:
    def run(self, model: ScriptedModel, **settings: Any) -> Any:
        return run_tool_loop(
            model,
            ASKED,
            tools=TestToolChoice.TOOLS,
            dispatch={"today": lambda: "Monday"},
            final_answer=True,
            **settings,
        )

    def test_is_one_more_call_with_tools_declared_and_none_allowed(self) -> None:
        model = ScriptedModel(
            wants(("today", "{}")), wants(("today", "{}")), Said("Monday, I think")
        )
        reply = self.run(model, max_steps=2)
        assert reply.text == "Monday, I think"
        assert model.params == [None, None, {"tool_choice": "none"}]
        assert model.tools == list(TestToolChoice.TOOLS)

    def test_ends_a_loop_of_repeats_too(self) -> None:
        model = ScriptedModel(*[wants(("today", "{}"))] * 4, Said("Monday"))
        assert self.run(model, max_repeats=4, max_steps=50).text == "Monday"

    def test_is_the_error_after_all_when_the_model_still_asks_for_tools(self) -> None:
        model = ScriptedModel(wants(("today", "{}")))
        error = stopped(lambda: self.run(model, max_steps=2))
        assert (error.reason, len(model.sent)) == ("max_steps", 3)
        assert error.messages[-1]["role"] == "tool"

    def test_takes_what_was_said_beside_such_a_wish(self) -> None:
        model = ScriptedModel(wants(("today", "{}")), wants(("today", "{}"), text="It is Monday."))
        assert self.run(model, max_steps=1).text == "It is Monday."

    def test_is_not_given_when_nothing_is_left_for_it(self) -> None:
        model = ScriptedModel(wants(("today", "{}"), usage=Usage(9, 1, 10)))
        error = stopped(lambda: self.run(model, max_tokens=10, max_steps=1))
        assert (error.reason, len(model.sent)) == ("max_tokens", 1)


class TestSteps:
    def test_on_step_sees_every_choice_and_every_result(self) -> None:
        seen: list[llmbroker.ToolStep] = []
        model = ScriptedModel(wants(("add", {"a": 1, "b": 2}), ("nope", "{}")), Said("3"))
        run_tool_loop(model, ASKED, dispatch={"add": lambda a, b: a + b}, on_step=seen.append)
        assert [(each.number, len(each.results)) for each in seen] == [(1, 2), (2, 0)]
        assert [(each.call.name, each.text, each.status) for each in seen[0].results] == [
            ("add", "3", ToolStatus.SUCCESS),
            ("nope", "Unknown tool nope. Available tools: add", ToolStatus.UNKNOWN_TOOL),
        ]
        assert seen[1].reply.text == "3"

    def test_what_on_step_raises_ends_the_run_with_a_whole_history(self) -> None:
        loop = ToolLoop(ASKED)
        model = ScriptedModel(wants(("n", "{}")))

        def enough(step: llmbroker.ToolStep) -> None:
            raise InterruptedError

        with pytest.raises(InterruptedError):
            run_tool_loop(model, loop, dispatch={"n": lambda: 1}, on_step=enough)
        assert loop.messages[-1]["content"] == "1"


class TestState:
    def test_limits_and_counts_survive_json(self) -> None:
        clock = Clock()
        loop = ToolLoop(
            ASKED,
            tools=list(TestToolChoice.TOOLS),
            max_steps=50,
            max_tokens=900,
            deadline=timedelta(minutes=1),
            tool_choice="required",
            final_answer=True,
            clock=clock,
        )
        for _ in range(3):
            step(loop, READ_A[0], usage=Usage(1, 2, 3))

        again = ToolLoop.from_state(json.loads(json.dumps(loop.state())), clock=clock)

        assert (again.run_id, again.limits) == (loop.run_id, loop.limits)
        assert again.run_usage == Usage(3, 6, 9)
        assert again.tool_choice is None
        step(again, READ_A[1])
        assert again.is_final
        assert again.tool_choice == "none"

    def test_a_call_that_could_not_be_read_is_not_run_after_a_restart_either(self) -> None:
        loop = ToolLoop(ASKED)
        loop.receive(wants(("wipe", '{"path": '), ("now", "{}")))
        again = ToolLoop.from_state(json.loads(json.dumps(loop.state())))
        assert [call.arguments for call in again.pending] == [None, {}]
        assert "not valid JSON" in (again.pending[0].problem or "")

    def test_a_loop_stopped_inside_a_turn_is_driven_to_its_end(self) -> None:
        loop = ToolLoop(ASKED)
        first, _ = loop.receive(wants(("n", {"of": 1}), ("n", {"of": 2})))
        loop.record(first, "one")
        again = ToolLoop.from_state(json.loads(json.dumps(loop.state())))

        model = ScriptedModel(Said("done"))
        reply = run_tool_loop(model, again, dispatch={"n": lambda of: f"ran {of}"})

        assert reply.text == "done"
        assert model.results == ["one", "ran 2"]

    def test_a_loop_may_bring_its_messages_and_the_call_its_tools(self) -> None:
        def today() -> str:
            """The date."""
            return "Monday"

        loop = ToolLoop(ASKED, max_steps=2)
        model = ScriptedModel(wants(("today", "{}")), Said("Monday"))
        assert run_tool_loop(model, loop, tools=[today]).text == "Monday"
        assert model.tools is not None
        assert loop.run_usage is None
        assert loop.steps_taken == 2
