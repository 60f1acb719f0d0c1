"""What the model is told: always one text, never blank, never too long."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from llmbroker import (
    ModelRetry,
    ToolFailed,
    ToolStatus,
)
from tests.llmbroker.tools.fakes import Drive, texts


class Broken:
    def __repr__(self) -> str:
        raise ZeroDivisionError("no text")


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


class TestResults:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (Decimal("1.10"), "1.10"),
            (datetime(2026, 1, 5, tzinfo=UTC), "2026-01-05 00:00:00+00:00"),
            (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            ({1, 2}, "{1, 2}"),
            (b"\xff\x00", "b'\\xff\\x00'"),
            (float("nan"), "nan"),
            (CYCLE, "[[...]]"),
            (None, "None"),
            ("", "(empty result)"),
            (" \n", "(empty result)"),
            ({("a", 1): 2}, "{('a', 1): 2}"),
            (object(), "<object object>"),
            ("a\x00b\ud83d", "a␀b�"),
        ],
    )
    def test_pass_through_str_and_are_never_blank(
        self, drive: Drive, value: object, text: str
    ) -> None:
        assert texts(drive(("f", "{}"), dispatch={"f": lambda: value})) == [text]

    def test_a_generator_s_address_is_nobody_s_business(self, drive: Drive) -> None:
        (text,) = texts(drive(("f", "{}"), dispatch={"f": lambda: (i for i in range(3))}))
        assert "0x" not in text
        assert "generator" in text

    def test_a_value_without_text_fails_alone(self, drive: Drive) -> None:
        results = drive(
            ("bad", "{}"), ("good", "{}"), dispatch={"bad": Broken, "good": lambda: "fine"}
        )
        assert texts(results) == ["Tool bad failed: no text", "fine"]
        assert [each.status for each in results] == [ToolStatus.FAILED, ToolStatus.SUCCESS]

    @pytest.mark.parametrize(
        ("result", "kept"),
        [
            ("[" + '{"id":1},' * 17667 + "{}]", None),
            ("x" * 19_999 + "🌍" * 10, "x" * 19_999 + "🌍"),
            ("a" * 19_999 + "e\u0301" * 9, "a" * 19_999),
            ("a" * 19_998 + "👩\u200d👧" * 3, "a" * 19_998),
            ("line\n" * 9_000, None),
        ],
        ids=["json", "emoji", "accent", "family", "lines"],
    )
    def test_are_capped_where_a_cut_leaves_them_valid(
        self, drive: Drive, result: str, kept: str | None
    ) -> None:
        (text,) = texts(drive(("f", "{}"), dispatch={"f": lambda: result}, max_result_chars=20_000))
        shown, _, note = text.rpartition("\n")
        assert len(shown) <= 20_000
        assert note == f"[cut: {len(result)} characters in all]"
        if kept is not None:
            assert shown == kept
        if result.startswith("["):
            assert json.loads(shown) == [{"id": 1}] * len(json.loads(shown))
        text.encode()

    def test_errors_have_the_same_cap_and_no_control_characters_that_stores_refuse(
        self, drive: Drive
    ) -> None:
        def fail() -> str:
            raise RuntimeError("y" * 2_000_000)

        results = drive(
            ("fail", "{}"),
            ("noise", "{}"),
            dispatch={"fail": fail, "noise": lambda: "\x00\x1b[31m" * 50_000},
            max_result_chars=20_000,
        )
        for each in results:
            assert len(each.text) < 20_100
            assert "\x00" not in each.text
        assert "[cut: 2000000 characters in all]" in results[0].text


class TestOutcomes:
    def test_a_tool_says_how_it_failed(self, drive: Drive) -> None:
        def retry() -> str:
            raise ModelRetry("the month is 1–12.")

        def final() -> str:
            raise ToolFailed("the account is closed.")

        def silent() -> str:
            raise OSError

        def leave() -> str:
            raise SystemExit(3)

        tools = [retry, final, silent, leave]
        results = drive(*((each.__name__, "{}") for each in tools), tools=tools)
        assert texts(results)[:3] == [
            "Tool retry failed: the month is 1–12. Correct the call and try again.",
            "Tool final failed: the account is closed. Trying again will not help.",
            "Tool silent failed: OSError",
        ]
        assert [each.status.value for each in results] == ["retry", "failed", "failed", "failed"]

    def test_an_error_shows_no_address_and_no_more_than_its_words(self, drive: Drive) -> None:
        class MuteError(Exception):
            def __str__(self) -> str:
                raise ZeroDivisionError

        def lost() -> str:
            raise KeyError(object())

        def mute() -> str:
            raise MuteError

        def huge() -> int:
            return 10**5000

        tools = [lost, mute, huge]
        results = drive(*((each.__name__, "{}") for each in tools), tools=tools)
        assert texts(results)[:2] == [
            "Tool lost failed: <object object>",
            "Tool mute failed: MuteError",
        ]
        assert results[2].text.startswith("Tool huge failed: Exceeds the limit")

    def test_a_tool_that_stops_an_iteration_does_not_stop_the_run(self, drive: Drive) -> None:
        def first(of: list[int]) -> int:
            """The first of some."""
            return next(iter(of))

        results = drive(("first", {"of": []}), ("first", {"of": [7]}), tools=[first])
        assert results[0].text.startswith("Tool first failed: StopIteration")
        assert results[1].text == "7"

    def test_a_coroutine_that_cancels_or_leaves_ends_itself_only(self, drive: Drive) -> None:
        async def cancel() -> str:
            raise asyncio.CancelledError

        async def leave() -> str:
            raise SystemExit(3)

        async def fine() -> str:
            return "fine"

        results = drive(
            ("cancel", "{}"), ("leave", "{}"), ("fine", "{}"), tools=[cancel, leave, fine]
        )
        assert [each.status.value for each in results] == ["failed", "failed", "success"]

    def test_bad_arguments_never_reach_the_function(self, drive: Drive) -> None:
        called: list[int] = []

        def book(nights: int) -> None:
            """Book."""
            called.append(nights)

        (result,) = drive(("book", {"nights": "many"}), tools=[book])
        assert result.status is ToolStatus.INVALID_ARGUMENTS
        assert result.text == (
            'Tool book failed: argument "nights" should be a valid integer, not "many"'
        )
        assert called == []
