"""What can be wrong with a template: how it is written, or what happens when it is rendered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a template. ``message`` counts its messages from 0."""

    offset: int
    line: int
    column: int
    message: int | None = None

    @classmethod
    def at(cls, offset: int, source: str, message: int | None = None) -> Place:
        """The place of ``source[offset]``; lines and columns count from 1."""
        line = source.count("\n", 0, offset) + 1
        return cls(offset, line, offset - source.rfind("\n", 0, offset), message)

    def __str__(self) -> str:
        here = f"line {self.line}, column {self.column}"
        return here if self.message is None else f"message {self.message + 1}, {here}"


class TemplateSyntaxError(ValueError):
    """The template breaks the grammar or a limit at ``place``."""

    def __init__(self, reason: str, place: Place) -> None:
        super().__init__(f"{place}: {reason}")
        self.reason = reason
        self.place = place


class TemplateRenderError(Exception):
    """The template could not be filled in; ``function`` is the one that its call was of."""

    def __init__(self, message: str, *, function: str | None = None) -> None:
        super().__init__(message)
        self.function = function


class UnknownFunctionError(LookupError):
    """The kernel has no function or plugin of that name, or several."""
