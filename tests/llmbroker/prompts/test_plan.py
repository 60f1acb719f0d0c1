"""kernel.plan: the model's choices as data, with nothing changed by them."""

from __future__ import annotations

import asyncio

import pytest

import llmbroker
from llmbroker import Kernel, Plan, PlanStep
from llmbroker.prompts.plan import NOT_RUN
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, ask, say


class Office:
    """One function that reads, and two that write."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @llmbroker.kernel_function(effect="pure")
    def today(self) -> str:
        """The date."""
        return "2026-01-05"

    @llmbroker.kernel_function(effect="idempotent")
    def book(self, day: str, seats: int) -> str:
        """Books a table."""
        self.done.append(f"booked {day} {seats}")
        return "booked"

    @llmbroker.kernel_function
    def send(self, text: str) -> str:
        """Sends a letter."""
        self.done.append(f"sent {text}")
        return "sent"


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def kernel(server: ModelServer, make_broker: MakeBroker, office: Office) -> Kernel:
    kernel = Kernel(make_broker(model(server)))
    kernel.add_plugin(office, "office")
    return kernel


def test_a_plan_lists_what_the_model_would_call_and_runs_only_what_is_pure(
    kernel: Kernel, server: ModelServer, office: Office
) -> None:
    server.script(
        ask(("functions.office-today", {})),
        ask(("office-book", {"day": "2026-01-05", "seats": "two"}), ("office-leave", {})),
        ask(("office-book", {"day": "2026-01-05", "seats": 2}), ids=("call_9",)),
        say("A table for two."),
    )

    plan = kernel.plan_sync("A table for today {{office.send 'x'}}", "office")

    assert office.done == []
    assert plan.answer == "A table for two."
    assert plan.steps[0] == PlanStep(1, "office.today", {}, ran=True, result="2026-01-05")
    bad, unknown = plan.steps[1:3]
    assert (bad.turn, bad.function, bad.ran) == (2, "office.book", False)
    assert "seats" in bad.result
    assert (unknown.turn, unknown.function, unknown.ran) == (2, "office-leave", False)
    assert plan.steps[3] == PlanStep(
        3, "office.book", {"day": "2026-01-05", "seats": 2}, ran=False, result=NOT_RUN
    )
    assert plan.usage == llmbroker.Usage(40, 20, 60)
    assert server.requests[0].messages[1]["content"] == "A table for today {{office.send 'x'}}"


def test_a_plan_that_goes_on_too_long_is_as_long_as_it_became(
    kernel: Kernel, server: ModelServer
) -> None:
    server.answer_with(lambda request: ask(("office-today", {}), ids=(f"c{len(server.requests)}",)))
    plan = kernel.plan_sync("x", max_steps=2)
    assert (len(plan.steps), plan.answer) == (2, None)


def test_plans_are_made_in_async_code_too(kernel: Kernel, server: ModelServer) -> None:
    server.script(say("Nothing to do."))
    assert asyncio.run(kernel.plan("x")) == Plan(
        "x", (), "Nothing to do.", llmbroker.Usage(10, 5, 15)
    )


def test_a_prompt_is_pure_unless_something_that_it_calls_is_not(
    kernel: Kernel, server: ModelServer, office: Office
) -> None:
    kernel.add_plugin(
        {
            "alone": "x",
            "reads": "{{office.today}}",
            "through": "{{reads}} {{alone}}",
            "round": "{{round}}",
            "writes": "{{office.send 'x'}}",
            "far": "{{reads}} {{writes}}",
            "lost": "{{office.gone}}",
        },
        "p",
    )
    kernel.add_function("p", function_name="said", prompt="{{p.writes}}", effect="pure")
    kernel.add_function("p", function_name="paid", prompt="x", effect="once")
    kernel.add_function("p", function_name="tooled", prompt="x", tools=["office"])
    names = [each.function.name for each in kernel.functions.values() if each.prompt]
    server.answer_with(
        lambda request: (
            say("fine")
            if "tools" not in request.body or len(request.messages) > 2
            else ask(*((name, {}) for name in names))
        )
    )

    plan = kernel.plan_sync("everything", "p")

    ran = {each.function for each in plan.steps if each.ran}
    assert ran == {"p.alone", "p.reads", "p.through", "p.round"}
    assert len(plan.steps) == len(names)
    assert office.done == []
