"""Request bodies: one JSON object, strictly read."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from rest_framework.parsers import JSONParser

from tenants.errors import InvalidInput

# Far below what breaks the parsers, databases and providers that the body may travel to.
MAX_DEPTH = 100

OUT_OF_RANGE = "A number in the body is out of range."


class StrictJSONParser(JSONParser):
    """UTF-8 JSON with an object at the top, without NaN, Infinity or bottomless nesting.

    Subclasses DRF's parser because DRF hands only that one a body whose size was checked.
    """

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002 - DRF's signature
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """The object in the body; InvalidInput otherwise, in words that do not repeat the body."""
        body = _decoded(stream.read())
        if not isinstance(body, dict):
            raise _invalid("The body must be a JSON object.")
        return body


def _decoded(raw: bytes) -> object:
    try:
        text = raw.decode("utf-8-sig")
        body = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_in_64_bits
        )
    except UnicodeDecodeError:
        raise _invalid("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise _invalid(
            f"The body is not JSON: line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise _invalid("The body is nested too deeply.") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(body)
    return body


def _check_depth(body: object) -> None:
    level = [body]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise _invalid("The body is nested too deeply.")


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refuse_constant(name: str) -> NoReturn:
    raise _invalid(f"{name} is not JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _invalid(OUT_OF_RANGE)
    return number


def _in_64_bits(text: str) -> int:
    """Longer integers have no place in a database, and Python refuses thousands of digits."""
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise _invalid(OUT_OF_RANGE)
    return int(text)


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, code="invalid_json")
