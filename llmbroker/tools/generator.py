"""pydantic's JSON Schema, told of docstrings and of what models understand best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from llmbroker.tools.docstrings import read_docstring
from llmbroker.tools.hints import description_in
from llmbroker.tools.schema_form import Schema


class Generator(GenerateJsonSchema):
    """Describes fields in the words of their class's docstring; a Decimal is a number."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> Schema:
        """A number: pydantic reads its digits exactly, and its text form has a pattern that
        grammars cannot follow."""
        number = core_schema.float_schema(**_bounds(schema))
        return self.float_schema(number)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        """With the docstring's sections given to the fields."""
        return _documented(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> Schema:
        """With the docstring's sections given to the keys."""
        return _documented(super().typed_dict_schema(schema), schema)

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """With the docstring's sections given to the fields."""
        return _documented(super().model_schema(schema), schema)


def _bounds(schema: core_schema.DecimalSchema) -> dict[str, Any]:
    return {name: float(schema[name]) for name in ("gt", "ge", "lt", "le") if name in schema}


def _documented(made: Schema, schema: Mapping[str, Any]) -> Schema:
    declared = schema.get("cls")
    properties = made.get("properties")
    if declared is None or not properties:
        return made
    documentation = read_docstring(declared)
    hints = _hints(declared)
    for name, each in properties.items():
        text = description_in(hints.get(name)) or documentation.parameters.get(name)
        if text is not None:
            each.setdefault("description", text)
    if documentation.parameters and "description" in made:
        made["description"] = documentation.description
    return made


def _hints(declared: type) -> dict[str, Any]:
    try:
        return get_type_hints(declared, include_extras=True)
    except NameError:  # names known to pydantic only, as in a class made inside a function
        return {}
