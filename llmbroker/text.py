"""Text and JSON that every store and every wire can hold.

Models, tools and people send U+0000 and halves of surrogate pairs; PostgreSQL refuses the
first and UTF-8 the second. Both are replaced by visible characters, and JSON numbers that
are no numbers (NaN, Infinity) become null.
"""

from __future__ import annotations

import math
import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_DEPTH = 64
_MAX_INTEGER = 2**63 - 1


def storable(text: str) -> str:
    """``text`` with U+0000 as U+2400 (␀) and lone surrogates as U+FFFD.

    >>> storable("a\\x00b\\ud83d")
    'a␀b�'
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda match: "␀" if match[0] == "\x00" else "�", text)


def storable_json(value: object, *, _depth: int = 0) -> object:
    """``value`` as strict JSON: text storable, NaN, Infinity and integers over 64 bits null.

    What JSON has no form for becomes its ``str``; nesting is cut at 64 levels.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int):
        return value if abs(value) <= _MAX_INTEGER else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if _depth >= _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {
            storable(str(key)): storable_json(item, _depth=_depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [storable_json(item, _depth=_depth + 1) for item in value]
    return storable(str(value))


def clip(text: str, limit: int) -> str:
    """At most ``limit`` characters of ``text``, with a mark where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
