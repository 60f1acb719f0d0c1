"""JSON as providers really send it: parsed strictly first, tolerantly where that fails."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

_LONG_NUMBER = re.compile(r"[0-9]{19}")
_MAX_DIGITS = 19  # what a signed 64-bit integer can need
_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|\x00")


def loads(data: bytes | str) -> Any:
    """The value in ``data``. NaN and Infinity become null, integers over 64 bits inexact or null.

    Halves of surrogate pairs stay as they are, since a stream may send the other half next.
    Raises ValueError for what is no JSON, or no UTF-8.

    >>> loads(b'{"a": NaN, "b": 1e400}')
    {'a': None, 'b': None}
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loads_tolerantly(data)


def holds_huge_integer(text: str) -> bool:
    """Whether an integer in ``text`` has more digits than 64 bits hold: ``loads`` rounds it.

    >>> holds_huge_integer('{"wei": 36893488147419103233}')
    True
    >>> holds_huge_integer('{"wei": "36893488147419103233"}')
    False
    """
    if not _LONG_NUMBER.search(text):
        return False
    found: list[str] = []
    try:
        json.loads(text, strict=False, parse_int=found.append)
    except (ValueError, RecursionError):
        return False
    return any(_integer(digits) is None for digits in found)


def may_be_unstorable(data: bytes) -> bool:
    """Whether ``data`` holds a U+0000 or a surrogate, which ``text.storable`` looks after."""
    return _UNSTORABLE.search(data) is not None


def as_mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _loads_tolerantly(data: bytes | str) -> Any:
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        return json.loads(
            text,
            strict=False,
            parse_constant=lambda _name: None,
            parse_int=_integer,
            parse_float=_number,
        )
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _number(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
