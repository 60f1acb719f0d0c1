"""A service that answers with what it was asked, and a kernel over it with one plugin."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest

import llmbroker
from llmbroker import Kernel, kernel_function


@dataclass
class Reply:
    """What Echo answers."""

    text: str
    tool_calls: None = None
    usage: llmbroker.Usage | None = None


@dataclass
class Echo:
    """A service that answers with what it was last asked, and notes all that it was given."""

    scope: str | None = "ann"
    asked: list[list[dict[str, Any]]] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)

    async def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: object = None,
        operation: str | None = None,
        **options: Any,
    ) -> Reply:
        self.asked.append(messages)
        self.options.append({"operation": operation, **options})
        return Reply(f"<{messages[-1]['content']}>")


class Sana:
    """A plugin."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @kernel_function(description="Kunni qaytaradi")
    def kun(self, farq: int = 0) -> str:
        self.calls.append(f"kun {farq!r}")
        return f"2026-01-{5 + farq:02}"

    @kernel_function(name="hafta_kuni")
    async def weekday(self, kun: date) -> str:
        """Haftaning kuni."""
        self.calls.append(f"hafta_kuni {kun!r}")
        return kun.strftime("%A")

    @llmbroker.function(effect="pure")
    def nol(self) -> int:
        """Nol."""
        return 0

    @staticmethod
    @kernel_function
    def birga(*soz: str) -> str:
        return " ".join(soz)

    def yashirin(self) -> str:
        return "not offered"


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def kernel(echo: Echo) -> Kernel:
    kernel = Kernel(echo)
    kernel.add_plugin(Sana(), plugin_name="sana")
    return kernel


def prompt(kernel: Kernel, text: Any, **options: Any) -> llmbroker.KernelFunction:
    return kernel.add_function("matn", function_name="x", prompt=text, **options)


def rendered(kernel: Kernel, text: str, **variables: object) -> str:
    return str(kernel.render_sync(prompt(kernel, text), **variables))
