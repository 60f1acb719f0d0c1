"""What the words of an error mean, by the table in error_words.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Set as AbstractSet
from pathlib import Path

from llmbroker.wire.failure import FailureKind

_TABLE = tomllib.loads(Path(__file__).with_name("error_words.toml").read_text("utf-8"))

_CODES = tuple((FailureKind(kind), frozenset(words["codes"])) for kind, words in _TABLE.items())
_PHRASES = tuple(
    (FailureKind(kind), re.compile("|".join(words["phrases"]), re.IGNORECASE))
    for kind, words in _TABLE.items()
    if "phrases" in words
)


def kind_of_codes(codes: AbstractSet[str]) -> FailureKind | None:
    """The kind that the machine-readable ``codes`` (in lower case) name, if they name one."""
    return next((kind for kind, words in _CODES if not words.isdisjoint(codes)), None)


def kind_of_text(text: str, among: AbstractSet[FailureKind] | None = None) -> FailureKind | None:
    """The kind that the wording of ``text`` suggests, if it is one of ``among``."""
    return next(
        (
            kind
            for kind, pattern in _PHRASES
            if (among is None or kind in among) and pattern.search(text)
        ),
        None,
    )
