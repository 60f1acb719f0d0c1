"""Token counts, in every provider's spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmbroker.models import Usage

# A larger count is garbage, and would overflow a 32-bit column.
_MAX_TOKENS = 2**31 - 1

_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_TOTAL = ("total_tokens",)
_CACHED = (
    "cached_tokens",  # OpenAI (in the details), Moonshot
    "prompt_cache_hit_tokens",  # DeepSeek
    "cache_read_input_tokens",  # Anthropic
)
_REASONING = ("reasoning_tokens",)
_PROMPT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_COMPLETION_DETAILS = ("completion_tokens_details", "output_tokens_details")


def read_usage(raw: object) -> Usage | None:
    """The counts in a ``usage`` object; a count that is missing or no number is None.

    None when there is no count at all: unknown is not zero.
    """
    if not isinstance(raw, dict) or not raw:
        return None
    fields: Mapping[str, Any] = raw
    counts = (
        _count(fields, _PROMPT),
        _count(fields, _COMPLETION),
        _count(fields, _TOTAL),
        _count(_with_details(fields, _PROMPT_DETAILS), _CACHED),
        _count(_with_details(fields, _COMPLETION_DETAILS), _REASONING),
    )
    return None if counts == _UNKNOWN else Usage(*counts)


_UNKNOWN = (None,) * 5


def _with_details(fields: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    for name in names:
        details = fields.get(name)
        if isinstance(details, dict):
            return {**fields, **details}
    return fields


def _count(fields: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = fields.get(name)
        if type(value) is int and 0 <= value <= _MAX_TOKENS:
            return value
    return None
