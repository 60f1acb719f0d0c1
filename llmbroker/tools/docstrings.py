"""What a docstring says: of the function or class, and of each parameter or field."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_REST = re.compile(r"^\s*:(?:param|arg|argument|key|keyword|raises?|returns?)\b", re.MULTILINE)
_NUMPY = re.compile(r"^(\w[\w ]*)\n-{3,}\s*$", re.MULTILINE)
_GOOGLE = re.compile(
    r"^(?:Args|Arguments|Parameters|Params|Attributes|Returns?|Yields?|Raises|Examples?|Notes?"
    r"|Keyword Args|Other Parameters):\s*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Documentation:
    """``parameters`` are described in the words of the docstring's own section."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(documented: Callable[..., Any] | type) -> Documentation:
    """The documentation of a function or class, in Google's, NumPy's or reST's style."""
    text = inspect.getdoc(documented)
    return parse(text) if text else Documentation()


def parse(text: str) -> Documentation:
    """The documentation in ``text``, whose indentation is already clean."""
    style = _style_of(text)
    if style is None:
        return Documentation(text.strip())
    import docstring_parser  # noqa: PLC0415 - only where there are sections to parse

    try:
        parsed = docstring_parser.parse(text, docstring_parser.DocstringStyle[style])
    except docstring_parser.ParseError:
        return Documentation(text.strip())
    return Documentation(
        (parsed.description or "").strip(),
        {
            each.arg_name.lstrip("*"): " ".join(each.description.split())
            for each in parsed.params
            if each.description
        },
    )


def _style_of(text: str) -> str | None:
    if _REST.search(text):
        return "REST"
    if _NUMPY.search(text):
        return "NUMPYDOC"
    return "GOOGLE" if _GOOGLE.search(text) else None
