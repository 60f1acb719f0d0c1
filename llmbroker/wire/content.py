"""Reads the content of a message: text, or a list of typed parts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from llmbroker.wire.lenient_json import as_mapping

_logger = logging.getLogger(__name__)

_TEXT_TYPES = frozenset({"text", "output_text", "refusal"})
_REASONING_TYPES = frozenset({"thinking", "reasoning", "reasoning.text", "reasoning.summary"})
_TEXT_KEYS = ("text", "refusal", "content", "summary", "thinking", "reasoning")

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Where providers put reasoning beside the content; some send it under two of these names."""


def read_content(raw: object) -> tuple[str, str]:
    """The text and the reasoning in a ``content``; a part of unknown type is left out."""
    if isinstance(raw, str):
        return raw, ""
    text: list[str] = []
    reasoning: list[str] = []
    for part in raw if isinstance(raw, list) else [raw]:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict):
            _read_part(part, text, reasoning)
    return "".join(text), "".join(reasoning)


def read_reasoning(message: Mapping[str, Any]) -> str:
    """The reasoning in the fields beside the content of a message or delta."""
    for name in REASONING_FIELDS:
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
    details = message.get("reasoning_details")
    return "".join(_texts(details)) if isinstance(details, list) else ""


def _read_part(part: Mapping[str, Any], text: list[str], reasoning: list[str]) -> None:
    kind = str(part.get("type") or "text")
    if kind in _TEXT_TYPES:
        text.extend(_texts(part))
    elif kind in _REASONING_TYPES:
        reasoning.extend(_texts(part))
    else:
        _logger.debug("left out a content part of unknown type %.40s", kind)


def _texts(value: object, nesting: int = 3) -> Iterator[str]:
    """The pieces of text in a part, which may hold text or parts of its own."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and nesting:
        for item in value:
            yield from _texts(item, nesting - 1)
    elif nesting:
        fields = as_mapping(value)
        found = next((fields[key] for key in _TEXT_KEYS if fields.get(key)), None)
        yield from _texts(found, nesting - 1)
