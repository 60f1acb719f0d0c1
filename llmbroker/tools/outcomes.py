"""How a tool call can end, and what tools raise to say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ToolStatus(StrEnum):
    """How one call ended."""

    SUCCESS = "success"
    FAILED = "failed"
    """The tool raised, or its value has no text."""
    RETRY = "retry"
    """The tool raised ModelRetry: the model is to correct its call."""
    INVALID_ARGUMENTS = "invalid_arguments"
    UNKNOWN_TOOL = "unknown_tool"
    TIMEOUT = "timeout"
    """No result in time; the tool may still have taken effect."""
    INTERRUPTED = "interrupted"
    """The run was cancelled before there was a result."""
    DENIED = "denied"
    """Somebody refused the call; it was not run."""


class ModelRetry(Exception):  # noqa: N818 - the field's name for it
    """Raised by a tool to have the model correct its call; the message says how."""


class ToolFailed(Exception):  # noqa: N818 - the field's name for it
    """Raised by a tool that failed for good: the model is told that repeating will not help."""


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """What is wrong with one argument, in words for the model."""

    argument: str
    reason: str

    def __str__(self) -> str:
        return f'argument "{self.argument}" {self.reason}'


class BadArgumentsError(ValueError):
    """The arguments do not fit the function; ``problems`` names each with its reason."""

    def __init__(self, problems: Sequence[ArgumentProblem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


TIMED_OUT = "timeout, no result within {seconds:.3g} s; it may still have taken effect"
INTERRUPTED = "interrupted, because the run was cancelled; it may have taken effect"
NOT_RUN = "not run, because the run was cancelled"


def failure(name: str, problem: str) -> str:
    """What the model is told when a tool did not work."""
    return f"Tool {name} failed: {problem}"
