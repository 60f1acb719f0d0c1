"""One cap for whatever a tool gives back, since every later step sends it again."""

from __future__ import annotations

import json
import unicodedata

MAX_RESULT_CHARS = 100_000

_JOINERS = "\u200d\ufe0e\ufe0f"
_DECODER = json.JSONDecoder()


def capped(text: str, limit: int = MAX_RESULT_CHARS) -> str:
    """At most ``limit`` characters of ``text``, and a note of how long it was.

    Of a JSON list or object whole members are kept, so that what is left is still JSON, unless
    that would leave too little; other text is never cut inside a character, however many code
    points that has.

    >>> capped("[10, 20, 30]", 8)
    '[10, 20]\\n[cut: 12 characters in all]'
    """
    if len(text) <= limit:
        return text
    kept = _whole_members(text, limit)
    if len(kept) < limit // 2:
        kept = text[: _boundary(text, limit)]
    return f"{kept}\n[cut: {len(text)} characters in all]"


def _boundary(text: str, limit: int) -> int:
    """The last place up to ``limit`` that is not inside a character."""
    for at in range(limit, max(0, limit - 32), -1):
        after = text[at]
        joined = unicodedata.combining(after) or after in _JOINERS or _is_modifier(after)
        if not joined and text[at - 1] != "\u200d":
            return at
    return limit


def _is_modifier(character: str) -> bool:
    """Skin tones, which belong to the emoji before them."""
    return "\U0001f3fb" <= character <= "\U0001f3ff"


def _whole_members(text: str, limit: int) -> str:
    """The members of a JSON list or object that fit into ``limit``, closed; empty if none does."""
    start = len(text) - len(text.lstrip())
    closing = {"[": "]", "{": "}"}.get(text[start : start + 1])
    if closing is None:
        return ""
    at, end = start + 1, None
    while at < limit:
        after = _member_end(text, at, is_object=closing == "}")
        if after is None or after >= limit:
            break
        end = after
        at = _skip_spaces(text, after)
        if text[at : at + 1] != ",":
            break
        at += 1
    return "" if end is None else text[:end] + closing


def _member_end(text: str, at: int, *, is_object: bool) -> int | None:
    try:
        _, end = _DECODER.raw_decode(text, _skip_spaces(text, at))
        if not is_object:
            return end
        at = _skip_spaces(text, end)
        if text[at : at + 1] != ":":
            return None
        return _DECODER.raw_decode(text, _skip_spaces(text, at + 1))[1]
    except (ValueError, RecursionError):
        return None


def _skip_spaces(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\n", "\t", "\r"):
        at += 1
    return at
