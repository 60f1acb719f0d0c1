"""Arguments after a Python signature: pydantic makes the schema and does the checking."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, NotRequired, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from llmbroker.tools.docstrings import Documentation
from llmbroker.tools.generator import Generator
from llmbroker.tools.hints import description_in, prepared, typed_dict
from llmbroker.tools.outcomes import BadArgumentsError
from llmbroker.tools.problems import problems_in, repaired
from llmbroker.tools.schema_form import json_type, readable
from llmbroker.tools.signature import EMPTY, Parameter, Signature

_REPAIRS = 3
"""How often what is found wrong is put right: text may hold an object that holds text."""

_CONFIG = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)


class TypedArguments:
    """The arguments of a function, by its signature and docstring."""

    def __init__(
        self, signature: Signature, documentation: Documentation, *, label: str, strict: bool
    ) -> None:
        """Raises TypeError for a hint that has no JSON Schema."""
        self._signature = signature
        self._names = [each.name for each in signature.parameters]
        self._optional = frozenset(each.name for each in signature.parameters if _optional(each))
        self._strict = strict
        fields = {
            each.name: _field(each, documentation.parameters.get(each.name))
            for each in signature.parameters
        }
        try:
            self._adapter = _adapter(fields, signature.rest)
        except PydanticUserError as error:
            raise TypeError(_misfit(label, signature, error)) from error
        self._label = label

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """See Arguments.parameters; not in strict form."""
        try:
            schema = self._adapter.json_schema(schema_generator=Generator)
        except PydanticUserError as error:
            raise TypeError(_misfit(self._label, self._signature, error)) from error
        for each in self._signature.parameters:
            _add_default(schema["properties"][each.name], each)
        return readable(schema)

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See Arguments.validated. What was left out stays out, for the function's default."""
        given = dict(arguments)
        for _ in range(_REPAIRS):
            try:
                return self._adapter.validate_python(given)
            except ValidationError as found:
                error = found
            again = repaired(given, error, optional=self._optional, deep=self._strict)
            if again is None:
                break
            given = again
        raise BadArgumentsError(problems_in(error, given, self._names))


def _adapter(fields: dict[str, Any], rest: Any) -> TypeAdapter[dict[str, Any]]:
    # A TypedDict, not a model: parameters may be called _x, schema, copy or model_config.
    if rest is EMPTY:
        shape = typed_dict("arguments", fields)
        shape.__pydantic_config__ = ConfigDict(extra="forbid", **_CONFIG)
    else:
        shape = typed_dict("arguments", fields, extra_items=prepared(rest))
        shape.__pydantic_config__ = _CONFIG
    return TypeAdapter(shape)


def _field(parameter: Parameter, documented: str | None) -> Any:
    hint = _hint(parameter)
    notes: list[Any] = [parameter.default] if isinstance(parameter.default, FieldInfo) else []
    if documented and description_in(hint) is None:
        # Before the hint's own notes, which win.
        hint = _described(hint, documented)
    hint = prepared(hint)
    if notes:
        hint = Annotated[(hint, *notes)]
    return NotRequired[hint] if _optional(parameter) else Required[hint]


def _described(hint: Any, text: str) -> Any:
    notes = getattr(hint, "__metadata__", ())
    if any(isinstance(each, FieldInfo) and each.description for each in notes):
        return hint
    return Annotated[hint, Field(description=text)]


def _hint(parameter: Parameter) -> Any:
    if parameter.is_list:
        return list if parameter.hint is EMPTY else list[parameter.hint]  # type: ignore[name-defined]
    if parameter.hint is not EMPTY:
        return parameter.hint
    if isinstance(parameter.default, str | int | float):
        # A model is told the default's type; what it sends instead is the function's to judge.
        return Annotated[Any, WithJsonSchema({"type": json_type(parameter.default)})]
    return Any


def _optional(parameter: Parameter) -> bool:
    if isinstance(parameter.default, FieldInfo):
        return not parameter.default.is_required()
    return not parameter.required


def _add_default(schema: dict[str, Any], parameter: Parameter) -> None:
    default = parameter.default
    if default is None or default is EMPTY or isinstance(default, FieldInfo):
        return
    try:
        number = isinstance(default, Decimal)
        schema["default"] = float(default) if number else to_jsonable_python(default)
    except PydanticSerializationError:
        return  # only a Python program could pass it


def _misfit(label: str, signature: Signature, error: PydanticUserError) -> str:
    """Says which parameter it is."""
    for each in signature.parameters:
        try:
            TypeAdapter(prepared(_hint(each))).json_schema()
        except PydanticUserError as found:
            return f"function {label}, parameter {each.name}: {found.message}"
    return f"function {label}: {error.message}"
