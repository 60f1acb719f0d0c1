"""What a model calls "arguments": text, an object, nothing, or something else altogether."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard

import orjson

from llmbroker.text import storable_json
from llmbroker.wire.lenient_json import holds_huge_integer, loads

_HUGE = "the arguments hold an integer of more than 64 bits, which would not arrive as it was sent."
_SHAPE = 'Send a JSON object such as {"name": "value"}.'


class Arguments(Protocol):
    """What a tool accepts."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Its JSON Schema."""
        ...

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments converted as the tool wants them. Raises BadArgumentsError."""
        ...


def parse_arguments(raw: object) -> tuple[dict[str, Any] | None, str | None]:
    """The arguments as an object, or None and what to tell the model.

    Nothing at all (absent, null, blank) is an empty object: models call tools without
    parameters that way. An object that was encoded twice is decoded twice.
    """
    if raw is None:
        return {}, None
    if isinstance(raw, dict):
        return raw, None
    if not isinstance(raw, str):
        return None, f"the arguments are not a JSON object. {_SHAPE}"
    if not raw.strip():
        return {}, None
    value, problem = _decode(raw)
    if isinstance(value, str):
        raw = value
        value, problem = _decode(raw)
    if problem is not None:
        return None, problem
    if not isinstance(value, dict):
        return None, f"the arguments are {_kind(value)}, not a JSON object. {_SHAPE}"
    return (None, _HUGE) if holds_huge_integer(raw) else (value, None)


def is_sound(raw: object) -> TypeGuard[str]:
    """Whether ``raw`` can go into a history as it is: strict JSON, and an object's."""
    if not isinstance(raw, str) or not raw.lstrip().startswith("{"):
        return False
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    return True


def _decode(text: str) -> tuple[Any, str | None]:
    try:
        return orjson.loads(text), None
    except orjson.JSONDecodeError as error:
        fault = error
    try:
        # Line breaks inside strings, NaN and halves of surrogate pairs do no harm once read.
        return storable_json(loads(text)), None
    except ValueError:
        where = f"line {fault.lineno}, column {fault.colno}"
        early = ", where they end too early" if fault.pos >= len(text.rstrip()) else ""
        return None, f"the arguments are not valid JSON ({where}{early}). {_SHAPE}"


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "a single value"
