"""Token counts, in every provider's spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmbroker.models import Usage

# A larger count is garbage, and would overflow a 32-bit column.
_MAX_TOKENS = 2**31 - 1

_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_CACHED = (
    "cached_tokens",  # OpenAI (in the details), Moonshot
    "prompt_cache_hit_tokens",  # DeepSeek
    "cache_read_input_tokens",  # Anthropic
)


def read_usage(raw: object) -> Usage | None:
    """The counts in a ``usage`` object; a count that is missing or no number is None.

    None when there is no count at all: unknown is not zero.
    """
    if not isinstance(raw, dict) or not raw:
        return None
    fields: Mapping[str, Any] = raw
    prompt_details = _first_mapping(fields, "prompt_tokens_details", "input_tokens_details")
    details = _first_mapping(fields, "completion_tokens_details", "output_tokens_details")
    usage = Usage(
        prompt_tokens=_count(fields, *_PROMPT),
        completion_tokens=_count(fields, *_COMPLETION),
        total_tokens=_count(fields, "total_tokens"),
        cached_tokens=_count(_joined(fields, prompt_details), *_CACHED),
        reasoning_tokens=_count(_joined(fields, details), "reasoning_tokens"),
    )
    return None if usage == _UNKNOWN else usage


_UNKNOWN = Usage()


def _first_mapping(fields: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = fields.get(name)
        if isinstance(value, dict):
            return value
    return {}


def _joined(fields: Mapping[str, Any], details: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**fields, **details} if details else fields


def _count(fields: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = fields.get(name)
        if type(value) is int and 0 <= value <= _MAX_TOKENS:
            return value
    return None
