"""What a model calls "arguments": text, an object, nothing, or something else altogether."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson


class Arguments(Protocol):
    """What a tool accepts."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Its JSON Schema."""
        ...

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments converted as the tool wants them. Raises BadArgumentsError."""
        ...


_SHAPE = 'Send a JSON object such as {"name": "value"}.'


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
        value, problem = _decode(value)
    if problem is not None:
        return None, problem
    if not isinstance(value, dict):
        return None, f"the arguments are {_kind(value)}, not a JSON object. {_SHAPE}"
    return value, None


def _decode(text: str) -> tuple[Any, str | None]:
    try:
        return orjson.loads(text), None
    except orjson.JSONDecodeError as error:
        return None, (
            f"the arguments are not valid JSON (line {error.lineno}, column {error.colno})."
            f" {_SHAPE}"
        )


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "a single value"
