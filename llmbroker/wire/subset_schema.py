"""Schemas for Gemini, which refuses every keyword that is not in its own subset.

The subset is that of ``Schema`` in ai.google.dev/api/caching#Schema, without ``default``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 32
_LARGEST = 2000  # schemas in one tool; inlined references could otherwise grow without end
_KEPT = frozenset(
    {
        "description",
        "enum",
        "format",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "nullable",
        "pattern",
        "title",
        "type",
    }
)
_FORMATS = {"string": {"date-time", "enum"}, "number": {"float", "double"}, "integer": {"int64"}}
_ANYTHING = {"type": "string"}


def subset(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` in Gemini's subset: references inlined, unions as ``anyOf``, the rest left out."""
    definitions = {
        f"#/{section}/{name}": definition
        for section in ("$defs", "definitions")
        for name, definition in _mapping(schema.get(section)).items()
    }
    return _Fitting(definitions).fit(schema, ())


class _Fitting:
    """One tool's schema on its way. A ``path`` names the references that led to a place."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._left = _LARGEST

    def fit(self, schema: object, path: tuple[str, ...]) -> dict[str, Any]:
        self._left -= 1
        fields, path = self._inlined(_mapping(schema), path)
        if self._left < 0 or len(path) > _DEEPEST:
            return {"type": "object"}
        fitted = {key: fields[key] for key in fields if key in _KEPT}
        _fit_type(fitted, fields)
        options = _list(fields.get("anyOf")) or _list(fields.get("oneOf"))
        if options:
            self._fit_union(fitted, options, path)
        if isinstance(fields.get("properties"), dict):
            self._fit_properties(fitted, fields, path)
        if fitted.get("type") == "array":
            items = fields.get("items") or [*_list(fields.get("prefixItems")), _ANYTHING][0]
            fitted["items"] = self.fit(items, (*path, "items"))
        return fitted

    def _inlined(
        self, fields: Mapping[str, Any], path: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """``fields`` with what they refer to, and what ``allOf`` adds, in their place.

        A reference that leads back to itself is cut: there the model may send any object.
        """
        merged = dict(fields)
        while "$ref" in merged:
            reference = str(merged.pop("$ref"))
            target = {"type": "object"} if reference in path else self._definitions.get(reference)
            merged = {**_mapping(target), **merged}
            path = (*path, reference)
        for part in _list(merged.pop("allOf", None)):
            if len(path) <= _DEEPEST:
                inlined, _ = self._inlined(_mapping(part), (*path, "allOf"))
                merged = _merged(merged, inlined)
        return merged, path

    def _fit_properties(
        self, fitted: dict[str, Any], fields: Mapping[str, Any], path: tuple[str, ...]
    ) -> None:
        properties: Mapping[str, Any] = fields["properties"]
        fitted["type"] = "object"
        fitted["properties"] = {
            name: self.fit(inner, (*path, name)) for name, inner in properties.items()
        }
        required = [
            name
            for name in _list(fields.get("required"))
            if isinstance(name, str) and name in properties
        ]
        if required:
            fitted["required"] = required

    def _fit_union(self, fitted: dict[str, Any], options: list[Any], path: tuple[str, ...]) -> None:
        real = [option for option in options if _mapping(option).get("type") != "null"]
        if len(real) < len(options):
            fitted["nullable"] = True
        if len(real) == 1:
            only = self.fit(real[0], (*path, "anyOf"))
            fitted |= {key: value for key, value in only.items() if key not in fitted}
        elif real:
            fitted["anyOf"] = [self.fit(option, (*path, "anyOf")) for option in real]


def _fit_type(fitted: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """One type, enums of text only, and only the formats that are known."""
    if "const" in fields:
        fitted["enum"] = [fields["const"]]
    types = fields.get("type")
    if isinstance(types, list):
        real = [name for name in types if name != "null"]
        fitted["type"] = real[0] if real else "string"
        if len(real) < len(types):
            fitted["nullable"] = True
        if len(real) > 1:
            del fitted["type"]
            fitted["anyOf"] = [{"type": name} for name in real]
    if "enum" in fitted:
        _fit_enum(fitted)
    if fitted.get("format") not in list(_FORMATS.get(str(fitted.get("type")), ())):
        fitted.pop("format", None)


def _fit_enum(fitted: dict[str, Any]) -> None:
    values = [value for value in _list(fitted.pop("enum")) if value is not None]
    if values and all(isinstance(value, str) for value in values):
        fitted["enum"] = values
        fitted["type"] = "string"  # Gemini 3 stumbles over an enum without it


def _merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**right, **left}
    properties = {**_mapping(right.get("properties")), **_mapping(left.get("properties"))}
    if properties:
        merged["properties"] = properties
    required = [*_list(left.get("required")), *_list(right.get("required"))]
    if required:
        merged["required"] = required
    return merged


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
