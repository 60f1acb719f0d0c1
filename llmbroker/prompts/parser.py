"""From a template's text to its nodes. Raises TemplateSyntaxError, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmbroker.prompts.errors import Place, TemplateSyntaxError
from llmbroker.prompts.nodes import Argument, Call, Node, Text, Variable
from llmbroker.prompts.scanner import DOUBLE_QUOTED, SINGLE_QUOTED, Piece, scan

NAME = r"[0-9A-Za-z_]+"

_TOKEN = re.compile(
    rf"""(?:(?P<name>{NAME})=)?
    (?: \$(?P<variable>{NAME})
      | (?P<quoted>{SINGLE_QUOTED}|{DOUBLE_QUOTED})
      | (?P<function>{NAME}(?:\.{NAME})?)
    )(?=\s|\Z)""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_ESCAPED = re.compile(r"""\\(['"\\])""")


def parse(source: str, *, strict: bool = False, message: int | None = None) -> list[Node]:
    """The nodes of ``source``. ``strict`` refuses a block that is never closed.

    ``message`` is the number that errors name.
    """
    parser = _Parser(source, message)
    return [parser.node(piece, strict=strict) for piece in scan(source)]


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    name: str | None
    value: Argument | None
    function: str | None


class _Parser:
    def __init__(self, source: str, message: int | None) -> None:
        self._source = source
        self._message = message

    def node(self, piece: Piece, *, strict: bool) -> Node:
        if piece.unclosed and strict:
            raise self._error(
                piece.start, "'{{' is never closed; for the braces themselves write {{ '{{' }}"
            )
        tokens = self._tokens(piece.start + 2, piece.end - 2) if piece.is_block else []
        if not tokens:
            return Text(self._source[piece.start : piece.end])
        first, *rest = tokens
        if first.name is not None:
            raise self._error(first.start, "an argument without a function before it")
        if first.value is None:
            return self._call(first, rest)
        if rest:
            raise self._error(rest[0].start, "nothing can follow a variable or a value")
        return Text(first.value) if isinstance(first.value, str) else first.value

    def _tokens(self, start: int, end: int) -> list[_Token]:
        tokens: list[_Token] = []
        at = self._skip_space(start, end)
        while at < end:
            found = _TOKEN.match(self._source, at, end)
            if found is None:
                raise self._error(at, self._diagnosis(at, end))
            tokens.append(_token(found))
            at = self._skip_space(found.end(), end)
        return tokens

    def _call(self, head: _Token, arguments: list[_Token]) -> Call:
        plugin, _, function = (head.function or "").rpartition(".")
        first: Argument | None = None
        named: dict[str, Argument] = {}
        for index, token in enumerate(arguments):
            if token.value is None:
                raise self._error(token.start, "an argument is $variable, 'text' or name=either")
            if token.name is None and index > 0:
                raise self._error(token.start, "only the first argument can do without a name")
            if token.name is None:
                first = token.value
            elif token.name in named:
                raise self._error(token.start, f"{token.name} is given twice")
            else:
                named[token.name] = token.value
        return Call(plugin or None, function, self._place(head.start), first, named)

    def _diagnosis(self, at: int, end: int) -> str:
        word = self._source[at:end].split(maxsplit=1)[0]
        shown = repr(word if len(word) <= 40 else word[:39] + "…")
        if word.startswith("$"):
            return f"{shown} is no variable: $ and a name of letters A-Z, digits and _"
        if word[0] in "'\"":
            return "a space must follow the quoted value"
        if word.startswith("=") or word.endswith("="):
            return "no space can stand before or after '='"
        return f"{shown} is no function, $variable, 'text' or name=value"

    def _skip_space(self, start: int, end: int) -> int:
        space = _SPACE.match(self._source, start, end)
        return space.end() if space else start

    def _place(self, offset: int) -> Place:
        return Place.at(offset, self._source, self._message)

    def _error(self, offset: int, reason: str) -> TemplateSyntaxError:
        return TemplateSyntaxError(reason, self._place(offset))


def _token(found: re.Match[str]) -> _Token:
    value: Argument | None = None
    if found["variable"]:
        value = Variable(found["variable"])
    elif found["quoted"]:
        value = _ESCAPED.sub(r"\1", found["quoted"][1:-1])
    return _Token(found.start(), found["name"], value, found["function"])
