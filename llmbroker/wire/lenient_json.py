"""JSON as providers really send it: parsed strictly first, tolerantly where that fails."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

_MAX_DIGITS = 19  # what a signed 64-bit integer can need
_UNSTORABLE_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def loads(data: bytes | str) -> Any:
    """The value in ``data``. NaN, Infinity and numbers that no 64 bits hold become null.

    Halves of surrogate pairs stay as they are, since a stream may send the other half next.
    Raises ValueError for what is no JSON, or no UTF-8.

    >>> loads(b'{"a": NaN, "b": 1e400}')
    {'a': None, 'b': None}
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loads_tolerantly(data)


def may_be_unstorable(data: bytes) -> bool:
    """Whether ``data`` writes out a U+0000 or a surrogate, which ``text.storable`` looks after."""
    return _UNSTORABLE_ESCAPE.search(data) is not None


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
