"""What pydantic finds wrong, repaired where that is safe, else in words for a model."""

from __future__ import annotations

import copy
from collections.abc import Container, Mapping, Sequence
from typing import Any

import orjson
from pydantic import ValidationError

from llmbroker.text import clip, storable
from llmbroker.tools.outcomes import ArgumentProblem

_OBJECT_TYPES = frozenset(
    {"model_type", "model_attributes_type", "dataclass_type", "dict_type", "mapping_type"}
)
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_LIST_TYPES = frozenset({"list_type", "tuple_type", "set_type", "frozen_set_type"})
_LONGEST_VALUE = 60

Path = tuple[str | int, ...]


def repaired(
    arguments: Mapping[str, Any],
    error: ValidationError,
    *,
    optional: Container[str | int],
    deep: bool,
) -> dict[str, Any] | None:
    """The arguments with what models often get wrong put right, or None if nothing was.

    Objects, lists and numbers sent as text are read; null for an ``optional`` argument is the
    same as leaving it out (``deep``: for any field, as strict schemas have it).
    """
    fixed = dict(arguments)
    changed = False
    for each in error.errors(include_url=False, include_context=False):
        path, value = _resolve(fixed, each["loc"])
        if not path:
            continue
        if value is None and (deep or (len(path) == 1 and path[0] in optional)):
            fixed, changed = _without(fixed, path), True
        elif isinstance(value, str):
            decoded = _decoded(value)
            if not isinstance(decoded, str):
                fixed, changed = _with(fixed, path, decoded), True
    return fixed if changed else None


def problems_in(
    error: ValidationError, arguments: Mapping[str, Any], known: Sequence[str]
) -> list[ArgumentProblem]:
    """One problem for each argument that is wrong, however many rules it breaks."""
    reasons: dict[str, dict[str, None]] = {}
    values: dict[str, Any] = {}
    for each in error.errors(include_url=False, include_context=False):
        missing = each["type"] == "missing"
        path, value = _resolve(arguments, each["loc"])
        if missing:
            path = (*path, each["loc"][-1])
        name = _written(path)
        reason = _reason(each["type"], each["msg"], known if len(path) == 1 else ())
        reasons.setdefault(name, {})[reason] = None
        if not missing and each["type"] not in _UNKNOWN:
            values[name] = value
    return [
        ArgumentProblem(name, " or ".join(each) + _got(values, name))
        for name, each in reasons.items()
    ]


def _reason(kind: str, message: str, known: Sequence[str]) -> str:
    if kind == "missing":
        return "is missing"
    if kind in _UNKNOWN:
        return f"is unknown (there are: {', '.join(known)})" if known else "is unknown"
    if kind in _OBJECT_TYPES:
        return "should be an object"
    if kind in _LIST_TYPES:
        return "should be a list"
    return message.removeprefix("Input ").removeprefix("Value error, ").partition(", unable to")[0]


def _got(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return ""
    try:
        text = orjson.dumps(values[name], default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):
        return ""
    return f", not {clip(storable(text), _LONGEST_VALUE)}"


def _resolve(arguments: Any, location: Sequence[str | int]) -> tuple[Path, Any]:
    """The path into ``arguments``, without the labels that pydantic adds, and what is there."""
    path: list[str | int] = []
    value = arguments
    for part in location:
        known: Any = range(len(value)) if isinstance(value, list) else value
        if isinstance(known, Mapping | range) and part in known:
            value = value[part]
            path.append(part)
    return tuple(path), value


def _written(path: Path) -> str:
    """``("points", 0, "x")`` as ``points[0].x``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _with(arguments: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    fixed, parent = _opened(arguments, path)
    parent[path[-1]] = value
    return fixed


def _without(arguments: dict[str, Any], path: Path) -> dict[str, Any]:
    fixed, parent = _opened(arguments, path)
    if isinstance(parent, dict):
        del parent[path[-1]]
    return fixed


def _opened(arguments: dict[str, Any], path: Path) -> tuple[dict[str, Any], Any]:
    """A copy of ``arguments`` whose containers along ``path`` may be changed, and the last one."""
    fixed = dict(arguments)
    parent: Any = fixed
    for part in path[:-1]:
        parent[part] = copy.copy(parent[part])
        parent = parent[part]
    return fixed, parent
