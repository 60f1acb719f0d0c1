"""Finds the blocks ``{{ … }}`` of a template, in one pass.

A block opens at the last ``{{`` before its ``}}``; braces inside quoted values are text, and
so is a block that is never closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

SINGLE_QUOTED = r"""'(?:\\['"\\]|[^'])*+'"""
DOUBLE_QUOTED = r'''"(?:\\['"\\]|[^"])*+"'''
"""A backslash escapes quotes and itself; before anything else it is a backslash."""

_OPENING = re.compile(r"\{\{+")
_INSIDE = re.compile(rf"""\{{\{{+|\}}\}}|{SINGLE_QUOTED}|{DOUBLE_QUOTED}|['"]""")


@dataclass(frozen=True, slots=True)
class Piece:
    """``source[start:end]``, a block with its braces."""

    start: int
    end: int
    is_block: bool
    unclosed: bool = False
    """Whether it is a text that begins with a ``{{`` which nothing closes."""


def scan(source: str) -> Iterator[Piece]:
    """The template's texts and blocks, in order; empty texts are left out."""
    done = 0
    while (opening := _OPENING.search(source, done)) is not None:
        start, end = _block(source, opening.end() - 2)
        if start > done:
            yield Piece(done, start, is_block=False)
        if end is None:
            yield Piece(start, len(source), is_block=False, unclosed=True)
            return
        yield Piece(start, end, is_block=True)
        done = end
    if done < len(source):
        yield Piece(done, len(source), is_block=False)


def _block(source: str, start: int) -> tuple[int, int | None]:
    """Where the block really starts that seems to start at ``start``, and where it ends."""
    for mark in _INSIDE.finditer(source, start + 2):
        if mark[0] == "}}":
            return start, mark.end()
        if mark[0].startswith("{{"):
            start = mark.end() - 2
        elif len(mark[0]) == 1:
            break  # a quote that is never closed: all that follows would be inside it
    return start, None
