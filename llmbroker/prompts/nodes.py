"""What a template consists of, once it is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llmbroker.prompts.errors import Place


@dataclass(frozen=True, slots=True)
class Text:
    """What the template's author wrote to be read as it is, also as ``{{ 'value' }}``."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """``{{$name}}``, or ``$name`` as an argument."""

    name: str


Argument = Variable | str
"""What a call passes: a variable as it is, or text."""


@dataclass(frozen=True, slots=True)
class Call:
    """``{{plugin.function first name=other}}``; ``first`` goes to the first parameter."""

    plugin: str | None
    function: str
    place: Place
    first: Argument | None = None
    named: Mapping[str, Argument] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As written."""
        return f"{self.plugin}.{self.function}" if self.plugin else self.function

    @property
    def arguments(self) -> list[Argument]:
        """All that are written."""
        first = [] if self.first is None else [self.first]
        return [*first, *self.named.values()]

    def __str__(self) -> str:
        return f"{{{{{self.name}}}}} ({self.place})"


Node = Text | Variable | Call
