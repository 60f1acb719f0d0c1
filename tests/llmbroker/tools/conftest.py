"""One turn of calls, in blocking code and in async code; and a gate that hung tools wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import llmbroker
from llmbroker import ToolResult, arun_tool_loop, run_tool_loop
from tests.llmbroker.tools.fakes import ASKED, AsyncModel, Drive, Said, ScriptedModel, wants


def drive_sync(*calls: tuple[str, object], **settings: Any) -> list[ToolResult]:
    seen: list[llmbroker.ToolStep] = []
    model = ScriptedModel(wants(*calls), Said("ok"))
    run_tool_loop(model, ASKED, on_step=seen.append, **settings)
    return list(seen[0].results)


def drive_async(*calls: tuple[str, object], **settings: Any) -> list[ToolResult]:
    seen: list[llmbroker.ToolStep] = []

    async def on_step(step: llmbroker.ToolStep) -> None:
        seen.append(step)

    model = AsyncModel(wants(*calls), Said("ok"))
    asyncio.run(arun_tool_loop(model, ASKED, on_step=on_step, **settings))
    return list(seen[0].results)


@pytest.fixture(params=[drive_sync, drive_async], ids=["sync", "async"])
def drive(request: pytest.FixtureRequest) -> Drive:
    return request.param


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hung tools wait for; opened when the test is over."""
    gate = threading.Event()
    yield gate
    gate.set()
