"""What invoking a function gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llmbroker.prompts.segments import RenderedPrompt


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """``str()`` gives the text. ``value`` is what a native function returned, or the text that
    the model answered; then ``reply`` is the whole reply and ``rendered`` what was asked.
    """

    function: str
    value: Any
    reply: Any = field(default=None, repr=False)
    rendered: RenderedPrompt | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return "" if self.value is None else str(self.value)
