"""What a callable's signature says: which parameters a model fills, and which we fill."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from llmbroker.tools.context import ToolContext

EMPTY = inspect.Parameter.empty
_SCALARS = (str, int, float, bool, list, dict, NoneType, None)
_NEVER_A_CONTEXT = (*_SCALARS, *(each.__name__ for each in _SCALARS if each), "None", "object")
_known_context_names: WeakKeyDictionary[Callable[..., Any], tuple[str, ...]] = WeakKeyDictionary()
_ONLY_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills. ``hint`` and ``default`` may be EMPTY."""

    name: str
    hint: Any
    default: Any
    is_list: bool = False
    """Whether it is ``*name``: a list for the model, spread out for the function."""

    @property
    def required(self) -> bool:
        """Whether the function cannot do without it."""
        return self.default is EMPTY and not self.is_list


@dataclass(frozen=True, slots=True)
class Signature:
    """``rest`` is the hint of ``**name``, EMPTY where there is none."""

    parameters: tuple[Parameter, ...]
    context_names: tuple[str, ...]
    rest: Any
    source: inspect.Signature
    by_place: bool

    def spread(
        self, arguments: Mapping[str, Any], context: ToolContext | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call the function with: positional and keyword arguments."""
        given = dict(arguments)
        for name in self.context_names:
            if context is not None or self.source.parameters[name].default is EMPTY:
                given[name] = context or ToolContext()
        if not self.by_place:
            return (), given
        bound = self.source.bind_partial()
        for name, parameter in self.source.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {
                    key: value for key, value in given.items() if key not in self.source.parameters
                }
            elif name in given:
                bound.arguments[name] = given[name]
        bound.apply_defaults()
        return bound.args, bound.kwargs


def read_signature(function: Callable[..., Any]) -> Signature:
    """Raises TypeError for a callable whose annotations cannot be read."""
    source = inspect.signature(function)
    hints = _hints(function)
    context_names: list[str] = []
    parameters: list[Parameter] = []
    rest: Any = EMPTY
    for name, each in source.parameters.items():
        hint = hints.get(name, EMPTY)
        if _is_context(hint):
            context_names.append(name)
        elif each.kind is inspect.Parameter.VAR_KEYWORD:
            rest = hint if hint is not EMPTY else Any
        else:
            is_list = each.kind is inspect.Parameter.VAR_POSITIONAL
            parameters.append(Parameter(name, hint, each.default, is_list))
    by_place = any(each.kind in _ONLY_BY_PLACE for each in source.parameters.values())
    return Signature(tuple(parameters), tuple(context_names), rest, source, by_place)


def context_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters annotated as ToolContext; none where the annotations cannot be read."""
    hints = getattr(function, "__annotations__", None)
    if hints is not None and all(each in _NEVER_A_CONTEXT for each in hints.values()):
        return ()  # so for most tools, and every run of a loop asks
    with suppress(KeyError, TypeError):
        return _known_context_names[function]
    try:
        names = read_signature(function).context_names
    except (TypeError, ValueError):
        return ()  # not kept: what cannot be read yet may be readable later
    with suppress(TypeError):  # neither hashed nor weakly held
        _known_context_names[function] = names
    return names


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Also for partials and for objects whose ``__call__`` is a coroutine function."""
    function = unwrapped(function)
    code = getattr(function, "__code__", None)
    if code is not None:
        return bool(code.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - its kind is asked, not its presence
    )


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a partial is of."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def needs_its_frame(function: Callable[..., Any]) -> bool:
    """Whether annotations may name what only the function's surroundings know, and only now."""
    function = unwrapped(function)
    return "<locals>" in getattr(function, "__qualname__", "") and any(
        isinstance(each, str) for each in getattr(function, "__annotations__", {}).values()
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    annotated: Any = unwrapped(function)
    if inspect.isclass(annotated):
        annotated = annotated.__init__
    elif not hasattr(annotated, "__annotations__"):
        annotated = type(annotated).__call__
    try:
        return get_type_hints(annotated, localns=_surroundings(annotated), include_extras=True)
    except NameError as error:
        raise TypeError(f"an annotation of {_label(function)} cannot be read: {error}") from error


def _surroundings(function: Callable[..., Any]) -> Mapping[str, Any] | None:
    """The local names of the function that ``function`` is being defined in."""
    if not needs_its_frame(function):
        return None
    outer = function.__qualname__.rpartition(".<locals>")[0].rpartition(".")[2]
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - inspect's own is slower
    while frame is not None:
        if frame.f_code.co_name == outer and frame.f_globals is getattr(
            function, "__globals__", None
        ):
            return dict(frame.f_locals)
        frame = frame.f_back
    return None


def _label(function: Callable[..., Any]) -> str:
    return str(getattr(unwrapped(function), "__qualname__", function))


def _is_context(hint: Any) -> bool:
    if hint is ToolContext:
        return True
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        members = [each for each in get_args(hint) if each is not NoneType]
        return len(members) == 1 and _is_context(members[0])
    return False
