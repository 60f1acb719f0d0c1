"""A rendered prompt: messages whose every piece of text says where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from llmbroker.models import Message


class Origin(StrEnum):
    """Who is to answer for a piece of text."""

    TEMPLATE = "template"
    """The template's author wrote it."""
    VARIABLE = "variable"
    """It is a value that was passed in."""
    RESULT = "result"
    """A function gave it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """``name`` is the variable's or the function's, None for the template's own text."""

    text: str
    origin: Origin
    name: str | None = None


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """One message. Its role comes from the template's structure and from nowhere else."""

    role: str
    segments: tuple[Segment, ...]

    @property
    def content(self) -> str:
        """All of its text."""
        return "".join(each.text for each in self.segments)


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """What a prompt function sends. ``str()`` gives its text, without the roles."""

    messages: tuple[RenderedMessage, ...]

    def as_chat(self) -> list[Message]:
        """The messages as ``chat`` takes them."""
        return [{"role": each.role, "content": each.content} for each in self.messages]

    def __str__(self) -> str:
        return "\n\n".join(each.content for each in self.messages)
