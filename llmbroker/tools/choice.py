"""``tool_choice``: whether the model may, must or must not ask for tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmbroker.models import ToolSchema

ToolChoice = str | dict[str, Any]
"""``auto``, ``none``, ``required``, the name of a tool, or OpenAI's object."""

_WORDS = frozenset({"auto", "none", "required"})


def choice_for_request(
    choice: ToolChoice | None, tools: Sequence[ToolSchema] | None
) -> ToolChoice | None:
    """``choice`` as a request says it: a tool's name becomes OpenAI's object.

    Raises ValueError for a name that no tool has.
    """
    if not isinstance(choice, str) or choice in _WORDS:
        return choice
    names = [tool.get("function", {}).get("name") for tool in tools or ()]
    if choice not in names:
        raise ValueError(f"tool_choice names {choice!r}, which is none of the tools: {names}")
    return {"type": "function", "function": {"name": choice}}


def is_forced(choice: ToolChoice | None) -> bool:
    """Whether ``choice`` makes the model ask for a tool."""
    return choice == "required" or isinstance(choice, dict)
