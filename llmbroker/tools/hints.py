"""Type hints as pydantic takes them: what people write beside is made of pydantic's own parts."""

from __future__ import annotations

from types import GenericAlias, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typing_extensions
from pydantic import Field

typed_dict: Any = typing_extensions.TypedDict
"""Called with fields that are only known at run time, which a type checker cannot follow."""


def prepared(hint: Any, _inside: tuple[Any, ...] = ()) -> Any:
    """``hint`` with texts in ``Annotated`` as descriptions, and with TypedDicts of any origin.

    pydantic refuses ``typing.TypedDict`` before Python 3.12.
    """
    if typing_extensions.is_typeddict(hint):
        return _typed_dict(hint, _inside)
    origin, args = get_origin(hint), get_args(hint)
    if not args or origin is Literal:
        return hint
    if origin is Annotated:
        notes = [_note(each) for each in hint.__metadata__]
        return Annotated[(prepared(args[0], _inside), *notes)]
    changed = tuple(
        prepared(each, _inside) if not isinstance(each, list) else each for each in args
    )
    if all(new is old for new, old in zip(changed, args, strict=True)):
        return hint
    return _rebuilt(hint, origin, changed)


def description_in(hint: Any) -> str | None:
    """The text that ``Annotated`` gives, plain or as ``Doc``."""
    if get_origin(hint) is not Annotated:
        return None
    for each in hint.__metadata__:
        text = each if isinstance(each, str) else getattr(each, "documentation", None)
        if isinstance(text, str):
            return text
    return None


def _note(note: Any) -> Any:
    text = note if isinstance(note, str) else getattr(note, "documentation", None)
    return Field(description=text) if isinstance(text, str) else note


def _rebuilt(hint: Any, origin: Any, args: tuple[Any, ...]) -> Any:
    if isinstance(hint, UnionType) or origin is Union:
        return Union[args]  # noqa: UP007 - the members are only known here
    if isinstance(hint, GenericAlias):
        return origin[args]
    return hint.copy_with(args)


def _typed_dict(hint: Any, inside: tuple[Any, ...]) -> Any:
    if hint in inside:
        return hint  # it contains itself: only pydantic can resolve that
    fields = {
        name: _field(each, name in hint.__required_keys__, (*inside, hint))
        for name, each in get_type_hints(hint, include_extras=True).items()
    }
    same = typed_dict(hint.__name__, fields)
    same.__doc__, same.__module__ = hint.__doc__, hint.__module__
    return same


def _field(hint: Any, required: bool, inside: tuple[Any, ...]) -> Any:  # noqa: FBT001
    origin = get_origin(hint)
    if origin in (Required, NotRequired):
        return origin[prepared(get_args(hint)[0], inside)]
    each = prepared(hint, inside)
    return Required[each] if required else NotRequired[each]
