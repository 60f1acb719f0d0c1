"""The tool loop as an object without I/O: stepped by a script, or by a worker with a store.

A caller sends ``messages``, gives the reply to ``receive``, runs the calls that come back and
gives each result to ``record``; that is one step. Nothing here knows how a model is reached
or how a tool runs, so the same object serves sync code, async code and durable runs.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from uuid_utils import uuid7

from llmbroker.models import Message, ToolSchema, Usage
from llmbroker.tools.calls import (
    ToolCall,
    ToolReply,
    assistant_message,
    bounded,
    call_in_history,
    ids_in,
    is_cut,
    read_calls,
    wire_name,
    with_problem,
)
from llmbroker.tools.choice import ToolChoice, choice_for_request, is_forced
from llmbroker.tools.limits import (
    MAX_CALLS_PER_TURN,
    MAX_REPEATS,
    SPENT,
    Clock,
    CostOf,
    Limits,
    Stop,
    ToolLoopStoppedError,
    moment,
)
from llmbroker.tools.outcomes import INTERRUPTED, ToolStatus, failure
from llmbroker.tools.steps import ToolResult, ToolStep
from llmbroker.tools.tally import Tally

Review = Callable[[str], str | None]
"""What is wrong with an answer, in words for the model; None if nothing is."""


class ToolLoop:
    """A conversation that goes on until the model answers without asking for a tool."""

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSchema] | None = None,
        max_steps: int = 8,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        cost_of: CostOf | None = None,
        deadline: datetime | timedelta | None = None,
        max_repeats: int | None = MAX_REPEATS,
        tool_choice: ToolChoice | None = None,
        final_answer: bool = False,
        review: Review | None = None,
        run_id: str | None = None,
        clock: Clock = time.time,
    ) -> None:
        """Start from ``messages``, which are copied and never changed.

        ``final_answer`` allows one call beyond the limits, in which the model may not ask for
        tools; not where tokens, money or time have run out. A ``tool_choice`` that forces a
        call does so in the first step only, or there would never be an answer. ``review``
        may find fault with an answer once: the model is told, and answers again. Raises
        ValueError for limits that make no sense.
        """
        if max_cost is not None and cost_of is None:
            raise ValueError("max_cost needs cost_of, which says what a reply has cost")
        self.messages: list[Message] = list(messages)
        self.tools = list(tools) if tools else None
        self.limits = Limits(
            max_steps=max_steps,
            max_tokens=max_tokens,
            max_cost=max_cost,
            deadline=moment(deadline, clock),
            max_repeats=max_repeats,
        )
        self.run_id = run_id or uuid7().hex
        self.reply: Any = None
        self.last_step: ToolStep | None = None
        self._choice = choice_for_request(tool_choice, self.tools)
        self._final_answer = final_answer
        self._final_refused = False
        self._review = review
        self._reviewed = False
        self.fault: str | None = None
        """What ``review`` found at the final answer, if it was not mended."""
        self._cost_of = cost_of
        self._clock = clock
        self._tally = Tally()
        self._last_reply: Any = None
        self._open: dict[str, ToolCall] = {}
        self._results: dict[str, ToolResult] = {}
        self._ids = ids_in(self.messages)

    @property
    def done(self) -> bool:
        """Whether the model has given its final answer, which is then in ``reply``."""
        return self.reply is not None

    @property
    def pending(self) -> list[ToolCall]:
        """The calls that still have no result, in the order asked."""
        return [call for call in self._open.values() if call.id not in self._results]

    @property
    def stop(self) -> Stop | None:
        """The limit that the loop has reached, if any."""
        return None if self.done else self._tally.stop(self.limits, self._clock())

    @property
    def is_final(self) -> bool:
        """Whether the next call of the model is the last answer, beyond the limits."""
        if not self._final_answer or self._final_refused:
            return False
        stop = self.stop
        return stop is not None and stop.reason not in SPENT

    @property
    def exhausted(self) -> bool:
        """Whether the loop must end though the model has not answered; ``stop`` says why."""
        if self.done or self._open:
            return False
        return self._final_refused or (self.stop is not None and not self.is_final)

    @property
    def tool_choice(self) -> ToolChoice | None:
        """What to send as ``tool_choice`` with ``messages``; None is to send nothing."""
        if self.tools and self.is_final:
            return "none"
        return None if self._tally.steps and is_forced(self._choice) else self._choice

    @property
    def max_steps(self) -> int:
        """How many calls of the model may ask for tools."""
        return self.limits.max_steps

    @property
    def steps_taken(self) -> int:
        """How many calls of the model there have been."""
        return self._tally.steps

    @property
    def run_usage(self) -> Usage | None:
        """The tokens of all calls together."""
        return self._tally.usage

    @property
    def seconds_left(self) -> float | None:
        """Time until the deadline, at least 0; None where there is none."""
        deadline = self.limits.deadline
        return None if deadline is None else max(0.0, deadline - self._clock())

    @property
    def run_cost(self) -> float:
        """What all calls have cost together, as far as ``cost_of`` knows."""
        return self._tally.cost

    def receive(
        self, reply: ToolReply, *, max_completion_tokens: int | None = None
    ) -> list[ToolCall]:
        """Take the model's reply to ``messages``; returns the tool calls to run.

        ``max_completion_tokens`` is the cap that the request had, by which arguments that are
        cut off are told from broken ones. Raises RuntimeError when called out of turn.
        """
        if self.done or self._open:
            raise RuntimeError("receive() is out of turn: the loop is done or waits for results")
        final = self.is_final
        self._tally.add_reply(reply.usage, self._cost_of(reply) if self._cost_of else None)
        if final or not reply.tool_calls:
            self._conclude(reply, final=final)
            return []
        calls = read_calls(reply, self._ids, cut=is_cut(reply, max_completion_tokens))
        self._tally.add_calls(calls)
        calls = bounded(calls, MAX_CALLS_PER_TURN)
        self.messages.append(assistant_message(reply, calls))
        self._open = {call.id: call for call in calls}
        self._last_reply = reply
        return calls

    def record(self, call: ToolCall, result: str, status: ToolStatus = ToolStatus.SUCCESS) -> None:
        """Take the result of one call. The turn closes when every call has one.

        Raises KeyError for a call that is not open.
        """
        if call.id not in self._open:
            raise KeyError(call.id)
        self._results[call.id] = ToolResult(call, result, status)
        self._tally.add_status(status)
        if len(self._results) == len(self._open):
            self._close_turn([self._results[identity] for identity in self._open])

    def interrupt(self) -> None:
        """Give every call that has no result one that says so, so that the history is whole."""
        for call in self.pending:
            self.record(call, failure(call.name, INTERRUPTED), ToolStatus.INTERRUPTED)

    def limit_error(self) -> ToolLoopStoppedError:
        """The error of an exhausted loop, with the conversation and its usage.

        Raises RuntimeError while the loop can go on.
        """
        stop = self.stop
        if stop is None:
            raise RuntimeError("limit_error() is out of turn: the loop has reached no limit")
        return ToolLoopStoppedError(stop, messages=list(self.messages), run_usage=self.run_usage)

    def state(self) -> dict[str, Any]:
        """The loop between two steps or inside one, as JSON."""
        return {
            "run_id": self.run_id,
            "messages": copy.deepcopy(self.messages),
            "tools": copy.deepcopy(self.tools),
            "limits": asdict(self.limits),
            "tool_choice": self._choice,
            "final_answer": self._final_answer,
            "final_refused": self._final_refused,
            "reviewed": self._reviewed,
            "tally": self._tally.state(),
            "problems": {call.id: call.problem for call in self._open.values() if call.problem},
            "results": {
                identity: [result.text, result.status] for identity, result in self._results.items()
            },
        }

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        *,
        cost_of: CostOf | None = None,
        review: Review | None = None,
        clock: Clock = time.time,
    ) -> ToolLoop:
        """The loop that gave ``state``, ready to go on. A finished loop has no state to resume."""
        loop = cls(state["messages"], tools=state["tools"], run_id=state["run_id"], clock=clock)
        loop.limits = Limits(**state["limits"])
        loop._choice = state["tool_choice"]
        loop._final_answer = state["final_answer"]
        loop._final_refused = state["final_refused"]
        loop._review = review
        loop._reviewed = state.get("reviewed", False)
        loop._cost_of = cost_of
        loop._tally = Tally.from_state(state["tally"])
        loop._reopen(state["problems"], state["results"])
        return loop

    def _reopen(self, problems: Mapping[str, str], results: Mapping[str, Sequence[str]]) -> None:
        asked = self.messages[-1].get("tool_calls") if self.messages else None
        for call in map(call_in_history, asked or ()):
            problem = problems.get(call.id)
            self._open[call.id] = call if problem is None else with_problem(call, problem)
        self._results = {
            identity: ToolResult(self._open[identity], text, ToolStatus(status))
            for identity, (text, status) in results.items()
        }

    def _conclude(self, reply: ToolReply, *, final: bool) -> None:
        self.last_step = ToolStep(self._tally.steps, reply)
        if final and not reply.text:
            self._final_refused = True  # it asked for tools again, though it was told not to
            return
        fault = self._review(reply.text) if self._review and not is_cut(reply, None) else None
        if fault is None or self._reviewed or final:
            self.fault = fault
            self.reply = reply
            return
        self._reviewed = True
        self.messages += [
            {"role": "assistant", "content": reply.text},
            {"role": "user", "content": fault},
        ]

    def _close_turn(self, results: list[ToolResult]) -> None:
        streaks = self._tally.repeats.close_turn([(each.call.key, each.text) for each in results])
        self.messages += [
            each.message(streak) for each, streak in zip(results, streaks, strict=True)
        ]
        self.last_step = ToolStep(self._tally.steps, self._last_reply, tuple(results))
        self._open, self._results = {}, {}


__all__ = [
    "ToolCall",
    "ToolLoop",
    "ToolReply",
    "ToolResult",
    "ToolStep",
    "wire_name",
    "with_problem",
]
