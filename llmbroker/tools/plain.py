"""Schemas of everyday hints, made without pydantic: its import and its work cost ten times this.

What is made here is what pydantic makes (a property test holds the two together); for all
other hints the answer is None.
"""

from __future__ import annotations

from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from llmbroker.tools.docstrings import Documentation
from llmbroker.tools.schema_form import JSON_TYPES, Schema, in_order, json_type, typed_enum
from llmbroker.tools.signature import EMPTY, Parameter, Signature

_SCALARS = dict(JSON_TYPES)


def plain_parameters(signature: Signature, documentation: Documentation) -> Schema | None:
    """The schema of the arguments, or None where a hint or a default is not plain."""
    if signature.rest is not EMPTY:
        return None
    properties: dict[str, Schema] = {}
    for each in signature.parameters:
        schema = _parameter(each, documentation.parameters.get(each.name))
        if schema is None:
            return None
        properties[each.name] = schema
    required = [each.name for each in signature.parameters if each.required]
    parameters: Schema = {"type": "object", "properties": properties}
    return {**parameters, "required": required} if required else parameters


def _parameter(parameter: Parameter, documented: str | None) -> Schema | None:
    schema = _of_parameter(parameter)
    if schema is None or not _is_plain_default(parameter.default):
        return None
    if documented and get_origin(parameter.hint) is not Annotated:
        schema["description"] = documented
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    if default is not EMPTY and default is not None:
        schema["default"] = default
    return in_order(schema)


def _of_parameter(parameter: Parameter) -> Schema | None:
    if parameter.hint is EMPTY:
        if parameter.is_list:
            return None
        told = isinstance(parameter.default, str | int | float)
        return {"type": json_type(parameter.default)} if told else {}
    schema = plain(parameter.hint)
    if parameter.is_list and schema is not None:
        return {"type": "array", "items": schema}
    return schema


def _is_plain_default(default: Any) -> bool:
    value = default.value if isinstance(default, Enum) else default
    return value is None or value is EMPTY or type(value) in _SCALARS


def plain(hint: Any) -> Schema | None:
    """The schema of one hint, if it is plain."""
    if isinstance(hint, type) and hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if hint is Any:
        return {}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _choices(list(args))
    if origin is Annotated:
        return _annotated(args)
    if origin in (Union, UnionType):
        return _union(args)
    if origin is list:
        items = plain(args[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and args[0] is str:
        values = plain(args[1])
        if values is None:
            return None
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    return None


def _enum(hint: type[Enum]) -> Schema | None:
    if hasattr(hint, "__get_pydantic_core_schema__") or (hint.__doc__ or "").count("\n"):
        return None
    schema = _choices([each.value for each in hint])
    if schema is not None and hint.__doc__:
        schema["description"] = hint.__doc__
    return schema and in_order(schema)


def _choices(values: list[Any]) -> Schema | None:
    if not values or not all(value is None or type(value) in _SCALARS for value in values):
        return None
    return typed_enum({"enum": values})


def _annotated(args: tuple[Any, ...]) -> Schema | None:
    inside, *notes = args
    schema = plain(inside)
    if schema is None or len(notes) != 1 or not isinstance(notes[0], str):
        return None
    return in_order({**schema, "description": notes[0]})


def _union(args: tuple[Any, ...]) -> Schema | None:
    members = [plain(each) for each in args if each is not NoneType]
    if NoneType in args:
        members.append({"type": "null"})
    if any(not member or "anyOf" in member for member in members):
        return None
    return {"anyOf": members}
