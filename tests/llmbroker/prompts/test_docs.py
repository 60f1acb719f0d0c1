"""The programs of docs/kernel.md run, in the order in which they stand."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, Reply, Request, ask, say

PAGE = Path(__file__).resolve().parents[3] / "docs" / "kernel.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def play(request: Request) -> Reply:
    """Greets with tomorrow's date, where it has tools."""
    if "tools" not in request.body:
        return say("Salom, Aziza!")
    results = [each["content"] for each in request.messages if each["role"] == "tool"]
    calls = [("dates-today", {"days": 1}), ("text-greeting", {"name": "Aziza"})]
    return ask(calls[len(results)]) if len(results) < 2 else say(" ".join(results))


def test_the_pages_programs_run(server: ModelServer, make_broker: MakeBroker) -> None:
    server.answer_with(play)
    names: dict[str, object] = {"broker": make_broker(model(server))}

    async def cells() -> None:
        for program in PROGRAMS:
            code = compile(program, str(PAGE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            value = eval(code, names)  # noqa: S307 - it is our own page
            if inspect.isawaitable(value):
                await value

    asyncio.run(cells())
    assert str(names["result"]) == "Salom, Aziza!"
    assert getattr(names["reply"], "text", None) == "2026-01-06 Salom, Aziza!"
    steps = getattr(names["plan"], "steps", ())
    assert [(each.function, each.ran) for each in steps] == [
        ("dates.today", True),
        ("text.greeting", True),
    ]
