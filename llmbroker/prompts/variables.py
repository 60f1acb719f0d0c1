"""The variables of a prompt function: declared, or those that its template names."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class PromptVariable:
    """A variable that is checked and converted by its type, as a function's parameter is."""

    type: Any = str
    description: str = ""
    default: Any = REQUIRED


Variables = Mapping[str, Any]
"""By name: a type or a PromptVariable; or, for all of them, a JSON Schema as databases hold it."""


@dataclass(frozen=True, slots=True)
class Declared:
    """``schema`` is the JSON Schema, or None where ``signature`` makes it."""

    signature: tuple[inspect.Parameter, ...]
    schema: dict[str, Any] | None
    defaults: Mapping[str, Any]
    is_checked: bool
    """Whether values are held to what is declared; nothing is known of inferred variables."""


def declaration_of(variables: Variables | None, used: Sequence[str]) -> Declared:
    """What is declared in ``variables``, or else what the template's use of them tells.

    Raises ValueError if the template uses a variable that is not declared.
    """
    if variables is None:
        # Texts that a model must give, and a program may leave out.
        schema = _object({name: {"type": "string"} for name in used})
        return Declared((), schema, {}, is_checked=False)
    unknown = [f"${name}" for name in used if name not in variables]
    if unknown:
        raise ValueError(
            f"the template uses {', '.join(unknown)}, which variables= does not declare"
        )
    kinds = {isinstance(each, Mapping) for each in variables.values()}
    if len(kinds) > 1:
        raise ValueError("variables= holds types or JSON Schemas, not both")
    return _written(variables) if kinds == {True} else _typed(variables)


def _written(schemas: Mapping[str, Any]) -> Declared:
    properties = {name: dict(each) for name, each in schemas.items()}
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    return Declared((), _object(properties, defaults), defaults, is_checked=True)


def _typed(variables: Mapping[str, Any]) -> Declared:
    parameters = [_parameter(name, _variable(each)) for name, each in variables.items()]
    defaults = {each.name: each.default for each in parameters if each.default is not REQUIRED}
    return Declared(tuple(parameters), None, defaults, is_checked=True)


def _variable(declared: Any) -> PromptVariable:
    return declared if isinstance(declared, PromptVariable) else PromptVariable(declared)


def _parameter(name: str, variable: PromptVariable) -> inspect.Parameter:
    hint = variable.type
    if variable.description:
        hint = Annotated[hint, variable.description]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=variable.default
    )


def _object(properties: dict[str, dict[str, Any]], optional: Iterable[str] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in set(optional)]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }
