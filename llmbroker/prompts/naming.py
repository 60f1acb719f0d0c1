"""Names of functions: for templates, and for models."""

from __future__ import annotations

import re

from llmbroker.prompts.parser import NAME

_NAME = re.compile(NAME)


def wire_name(plugin: str, function: str) -> str:
    """The name that models see. Raises ValueError for names that templates could not call."""
    for name in (plugin, function):
        if not _NAME.fullmatch(name):
            raise ValueError(f"names consist of letters A-Z, digits and _, which {name!r} does not")
    if len(plugin) + len(function) > 63:
        raise ValueError(f"{plugin}.{function}: both names together have at most 63 letters")
    return f"{plugin}-{function}"
