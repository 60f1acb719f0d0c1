"""Native functions: Python callables, marked by ``@kernel_function`` or not."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, Unpack, cast, get_args, overload

from llmbroker.prompts.trail import followed
from llmbroker.tools.function import Function, Options
from llmbroker.tools.signature import is_coroutine_function
from llmbroker.tools.workers import run_in_thread

Marked = TypeVar("Marked", bound=Callable[..., Any])

_MARK = "__kernel_function__"
_WORD = re.compile(r"\w+")


@overload
def kernel_function(function: Marked, /) -> Marked: ...


@overload
def kernel_function(**options: Unpack[Options]) -> Callable[[Marked], Marked]: ...


def kernel_function(
    function: Marked | None = None, /, **options: Unpack[Options]
) -> Marked | Callable[[Marked], Marked]:
    """Mark a method or function for ``Kernel.add_plugin``; it stays what it is.

    ``name`` and ``description`` default to its own name and docstring; the other options are
    those of ``llmbroker.function``.
    """

    def mark(marked: Marked) -> Marked:
        setattr(marked, _MARK, options)
        return marked

    return mark if function is None else mark(function)


def functions_of(plugin: object) -> Iterator[tuple[str, Any]]:
    """The functions of a plugin with their names: all of a dict's, an object's marked ones."""
    if isinstance(plugin, Mapping):
        yield from plugin.items()
        return
    for attribute, value in inspect.getmembers_static(plugin):
        declared = getattr(value, "__func__", value)  # of a static or class method
        if isinstance(declared, Function):
            yield declared.name, getattr(plugin, attribute)
        elif hasattr(declared, _MARK):
            yield name_of(declared), getattr(plugin, attribute)


def name_of(function: Any) -> str:
    """The name that the function was declared with, or has."""
    if isinstance(function, Function):
        return function.name
    return _options_of(function).get("name") or str(getattr(function, "__name__", ""))


def _options_of(function: Any) -> Options:
    """What ``@kernel_function`` was told."""
    return cast("Options", getattr(function, _MARK, {}))


def native_function(
    function: Callable[..., Any], kernel: object, name: str, options: Mapping[str, Any]
) -> Function[..., Any]:
    """``function`` as a Function of that name; a parameter annotated as Kernel gets ``kernel``.

    Options that are None stay as they were declared. Raises ValueError for a Function that asks
    for the kernel.
    """
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    given["name"] = name
    asks_for = _kernel_parameters(function, type(kernel))
    if isinstance(function, Function):
        if asks_for:
            raise ValueError(f"{function!r} asks for the kernel: declare it by @kernel_function")
        return Function.of(function, **given)
    declared = {**_options_of(function), **given}
    if asks_for:
        function = _with_kernel(function, dict.fromkeys(asks_for, kernel))
    return Function(function, **declared)


def _kernel_parameters(function: Callable[..., Any], kernel_type: type) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some of C's functions do not tell
        return []
    return [name for name, each in parameters.items() if _is_kernel(each.annotation, kernel_type)]


def _is_kernel(annotation: Any, kernel_type: type) -> bool:
    kinds = kernel_type.__mro__[:-1]
    if isinstance(annotation, str):
        return not {each.__name__ for each in kinds}.isdisjoint(_WORD.findall(annotation))
    return any(each in kinds for each in (annotation, *get_args(annotation)))


def _with_kernel(function: Callable[..., Any], kernels: Mapping[str, Any]) -> Callable[..., Any]:
    """``function`` without those parameters: neither models nor templates see them."""
    is_async = is_coroutine_function(function)

    @functools.wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        work = functools.partial(function, *args, **kwargs, **kernels)
        with followed():
            return await work() if is_async else await run_in_thread(work)

    source = inspect.signature(function)
    called.__signature__ = source.replace(  # type: ignore[attr-defined]
        parameters=[each for name, each in source.parameters.items() if name not in kernels]
    )
    called.__annotations__ = {
        name: hint for name, hint in called.__annotations__.items() if name not in kernels
    }
    return called
