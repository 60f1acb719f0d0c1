"""Tool schemas fitted to a provider. The caller's own schema is never changed.

``plain``   sent as it is, without ``strict``, which is ignored or refused there
``strict``  OpenAI: ``strict`` stays only on a schema that can honour it (see closed_schema)
``subset``  Gemini: only the keywords that it knows (see subset_schema)

Everywhere a name is required only if it is a property. Arguments are checked against the
original schema, whatever was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from llmbroker.models import ToolSchema
from llmbroker.text import storable_json
from llmbroker.wire.closed_schema import closed
from llmbroker.wire.profiles import Profile
from llmbroker.wire.subset_schema import subset

_NO_PARAMETERS = {"type": "object", "properties": {}}
_DEEPEST = 64
_LARGEST_KEPT = 64 * 1024


def fitted(tools: Sequence[ToolSchema], profile: Profile) -> list[ToolSchema]:
    """``tools`` as the provider of ``profile`` accepts them, as new objects."""
    schemas: list[ToolSchema] = orjson.loads(fitted_json(tools, profile))
    return schemas


def fitted_json(tools: Sequence[ToolSchema], profile: Profile) -> bytes:
    """The same as JSON text. The same tools come with every call, so it is kept."""
    try:
        raw = orjson.dumps(tools)
    except TypeError:
        raw = orjson.dumps(storable_json(tools))
    make = _kept_json if len(raw) <= _LARGEST_KEPT else _fitted_json
    return make(raw, profile.schema)


def _fitted_json(tools: bytes, form: str) -> bytes:
    return orjson.dumps([_fitted(tool, form) for tool in orjson.loads(tools)])


_kept_json = lru_cache(maxsize=256)(_fitted_json)


def _fitted(tool: Any, form: str) -> Any:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return tool  # a tool of the provider's own
    parameters = without_ghosts(function.get("parameters") or _NO_PARAMETERS)
    is_strict = function.get("strict") is True
    function = {key: value for key, value in function.items() if key != "strict"}
    if form == "subset":
        parameters = subset(parameters)
        if not parameters.get("properties"):
            return {"type": "function", **tool, "function": _without_parameters(function)}
    elif form == "strict" and is_strict:
        narrow = closed(parameters)
        function["strict"] = narrow is not None
        parameters = narrow or parameters
    function["parameters"] = parameters
    return {"type": "function", **tool, "function": function}


def _without_parameters(function: Mapping[str, Any]) -> dict[str, Any]:
    """Gemini takes no object without properties: a function without parameters has none."""
    return {key: value for key, value in function.items() if key != "parameters"}


def without_ghosts(schema: Any, *, _depth: int = 0) -> Any:
    """``schema`` where ``required`` names only properties that there are."""
    if isinstance(schema, list):
        return [without_ghosts(item, _depth=_depth + 1) for item in schema]
    if not isinstance(schema, dict) or _depth > _DEEPEST:
        return schema
    copy = {key: without_ghosts(value, _depth=_depth + 1) for key, value in schema.items()}
    required, properties = copy.get("required"), copy.get("properties")
    if isinstance(required, list) and isinstance(properties, Mapping):
        copy["required"] = [
            name for name in required if isinstance(name, str) and name in properties
        ]
    return copy
