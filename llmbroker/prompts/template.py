"""PromptTemplate: text with variables and calls in it, for one message or for several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llmbroker.prompts.errors import Place, TemplateRenderError, TemplateSyntaxError
from llmbroker.prompts.limits import DEFAULT_LIMITS, TemplateLimits
from llmbroker.prompts.nodes import Call, Node, Text, Variable
from llmbroker.prompts.parser import parse
from llmbroker.prompts.segments import Origin, RenderedMessage, RenderedPrompt, Segment

ROLES = ("system", "developer", "user", "assistant")

TemplateSource = str | Sequence[Mapping[str, str]]
"""One user message, or a list of ``{"role": …, "content": …}``."""


class PromptTemplate:
    """A parsed template. It does no I/O: whoever renders it brings the results of its calls."""

    def __init__(
        self,
        source: TemplateSource,
        *,
        strict: bool = False,
        limits: TemplateLimits = DEFAULT_LIMITS,
    ) -> None:
        """``strict`` refuses what is otherwise let pass: a variable without a value, which
        is empty, and a ``{{`` that is never closed, which is text.

        Raises TemplateSyntaxError, and ValueError for messages that are none.
        """
        self.source = source
        self.strict = strict
        self._limits = limits
        written = _messages_of(source)
        _check_size(written, limits)
        self._messages = [
            (each.role, parse(each.content, strict=strict, message=each.number)) for each in written
        ]
        self.calls: tuple[Call, ...] = tuple(
            node for node in self._nodes() if isinstance(node, Call)
        )
        if len(self.calls) > limits.calls:
            place = self.calls[limits.calls].place
            raise TemplateSyntaxError(f"more than {limits.calls} calls", place)
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(self._variable_names()))

    def check(self, variables: Mapping[str, object]) -> None:
        """Raise TemplateRenderError if the template is strict and a variable has no value."""
        missing = [f"${name}" for name in self.variables if name not in variables]
        if self.strict and missing:
            raise TemplateRenderError(f"no value is given for {', '.join(missing)}")

    def render(
        self, variables: Mapping[str, object] | None = None, results: Sequence[object] = ()
    ) -> RenderedPrompt:
        """The prompt with ``variables`` filled in, and ``results`` in place of the calls.

        Raises TemplateRenderError; ValueError unless there is a result for each of ``calls``.
        """
        if len(results) != len(self.calls):
            raise ValueError(
                f"the template calls {len(self.calls)} functions and {len(results)} results"
                " are given; Kernel.render calls them"
            )
        given = variables or {}
        self.check(given)
        values = iter(results)
        room = _Room(self._limits.rendered_chars)
        return RenderedPrompt(
            tuple(
                RenderedMessage(
                    role, tuple(room.taken_by(_segment(node, given, values)) for node in nodes)
                )
                for role, nodes in self._messages
            )
        )

    def _nodes(self) -> Iterator[Node]:
        for _, nodes in self._messages:
            yield from nodes

    def _variable_names(self) -> Iterator[str]:
        for node in self._nodes():
            for each in node.arguments if isinstance(node, Call) else [node]:
                if isinstance(each, Variable):
                    yield each.name


class _Room:
    """How many characters may still be rendered."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def taken_by(self, segment: Segment) -> Segment:
        self._left -= len(segment.text)
        if self._left < 0:
            raise TemplateRenderError(f"the prompt has more than {self._limit} characters")
        return segment


@dataclass(frozen=True, slots=True)
class _Written:
    number: int | None
    role: str
    content: str


def _messages_of(source: TemplateSource) -> list[_Written]:
    if isinstance(source, str):
        return [_Written(None, "user", source)]
    if not source:
        raise ValueError("a template has at least one message")
    return [_message(number, each) for number, each in enumerate(source)]


def _message(number: int, message: Any) -> _Written:
    if (
        not isinstance(message, Mapping)
        or set(message) != {"role", "content"}
        or message["role"] not in ROLES
        or not isinstance(message["content"], str)
    ):
        raise ValueError(
            f"message {number + 1} of a template is {{'role': …, 'content': text}},"
            f" its role one of {', '.join(ROLES)}; got {message!r}"
        )
    return _Written(number, message["role"], message["content"])


def _check_size(messages: list[_Written], limits: TemplateLimits) -> None:
    left = limits.source_chars
    for each in messages:
        if len(each.content) > left:
            reason = f"the template has more than {limits.source_chars} characters"
            raise TemplateSyntaxError(reason, Place.at(left, each.content, each.number))
        left -= len(each.content)


def _segment(node: Node, variables: Mapping[str, object], results: Iterator[object]) -> Segment:
    if isinstance(node, Text):
        return Segment(node.text, Origin.TEMPLATE)
    if isinstance(node, Variable):
        text = _text_of(variables.get(node.name), f"${node.name}")
        return Segment(text, Origin.VARIABLE, node.name)
    return Segment(_text_of(next(results), node.name), Origin.RESULT, node.name)


def _text_of(value: Any, name: str) -> str:
    """``str(value)``; None is empty, and 0 and False are not."""
    if value is None:
        return ""
    try:
        return str(value)
    except Exception as error:
        raise TemplateRenderError(f"the value of {name} has no text: {error}") from error
