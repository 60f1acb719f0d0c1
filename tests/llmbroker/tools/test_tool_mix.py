"""Which tools a loop can be given, and which one a name means."""

from __future__ import annotations

from typing import ClassVar

import pytest

import llmbroker
from llmbroker import (
    Function,
    ToolStatus,
    run_tool_loop,
)
from tests.llmbroker.tools.fakes import ASKED, Drive, Said, ScriptedModel, texts, wants


class TestMixing:
    def test_callables_functions_and_schemas_go_together(self, drive: Drive) -> None:
        def today() -> str:
            """The date."""
            return "Monday"

        @llmbroker.function(name="math-add")
        async def add(a: int, b: int) -> int:
            """Add."""
            return a + b

        written = {
            "type": "function",
            "function": {"name": "weather", "parameters": {"type": "object"}, "x-mine": True},
        }
        results = drive(
            ("today", "{}"),
            ("math-add", {"a": "1", "b": 2}),
            ("weather", {"city": "Oslo"}),
            tools=[today, add, written],
            dispatch={"weather": lambda city: f"{city}: 20"},
        )
        assert texts(results) == ["Monday", "3", "Oslo: 20"]

    def test_written_schemas_are_sent_as_they_are(self) -> None:
        written = {"type": "function", "function": {"name": "w", "parameters": {}, "x": 1}}
        model = ScriptedModel(Said("ok"))
        run_tool_loop(model, ASKED, tools=[written, Function.of(len, name="size")])
        assert model.tools is not None
        assert model.tools[0] is written
        assert model.tools[1]["function"]["name"] == "size"

    def test_two_tools_of_one_name_are_refused(self) -> None:
        def today() -> str:
            return ""

        with pytest.raises(ValueError, match="two tools are called today"):
            run_tool_loop(ScriptedModel(Said("ok")), ASKED, tools=[today, Function.of(today)])
        with pytest.raises(TypeError, match="a tool is"):
            run_tool_loop(ScriptedModel(Said("ok")), ASKED, tools=["today"])  # type: ignore[list-item]

    def test_dispatch_may_stand_in_for_a_callable_s_own_function(self, drive: Drive) -> None:
        def today(zone: str) -> str:
            raise AssertionError(zone)

        given = drive(
            ("today", {"zone": 1}), tools=[today], dispatch={"today": "faked {zone}".format}
        )
        assert texts(given) == ["faked 1"]


class TestNames:
    REGISTERED: ClassVar = {"query_dataset": lambda q: f"ran {q}", "search_docs": lambda: "ran"}

    def test_what_templates_glue_on_is_forgiven_and_nothing_else_is_guessed(
        self, drive: Drive
    ) -> None:
        results = drive(
            ("serch_docs", "{}"),
            ("query_dataset<|channel|>commentary", {"q": 1}),
            ("functions.query_dataset", {"q": 2}),
            ("functions.query_dataset:0", {"q": 3}),
            ("default_api:query_dataset", {"q": 4}),
            (" query_dataset\n", {"q": 5}),
            ("", "{}"),
            ("multi_tool_use.parallel", {"tool_uses": []}),
            dispatch=self.REGISTERED,
        )
        assert texts(results)[1:6] == [f"ran {number}" for number in range(1, 6)]
        for each in (results[0], *results[6:]):
            assert each.status is ToolStatus.UNKNOWN_TOOL
            assert each.text.startswith(f"Unknown tool {each.call.name}")
            assert each.text.endswith("Available tools: query_dataset, search_docs")

    @pytest.mark.parametrize(
        "name", ["Query_Dataset", "other.query_dataset", "query_dataset.", "<|x|>", "functions."]
    )
    def test_what_is_only_like_a_name_is_unknown(self, drive: Drive, name: str) -> None:
        (result,) = drive((name, {"q": 1}), dispatch=self.REGISTERED)
        assert result.status is ToolStatus.UNKNOWN_TOOL

    def test_names_go_back_as_providers_accept_them(self) -> None:
        model = ScriptedModel(wants(("query<|x|>", "{}"), ("a" * 99, "{}"), ("", "{}")), Said(""))
        run_tool_loop(model, ASKED, dispatch=self.REGISTERED)
        for call in model.sent[-1][1]["tool_calls"]:
            name = call["function"]["name"]
            assert 1 <= len(name) <= 64
            assert name.replace("_", "").replace("-", "").isalnum()
