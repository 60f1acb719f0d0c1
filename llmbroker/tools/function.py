"""Functions that models can call: a Python callable with its schema."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from llmbroker.models import ToolSchema
from llmbroker.tools.arguments import Arguments
from llmbroker.tools.context import ToolContext
from llmbroker.tools.declared import DeclaredArguments
from llmbroker.tools.docstrings import Documentation, read_docstring
from llmbroker.tools.signature import (
    Signature,
    is_coroutine_function,
    needs_its_frame,
    read_signature,
)
from llmbroker.tools.workers import run_coroutine, run_in_thread
from llmbroker.tools.written import WrittenArguments

P = ParamSpec("P")
R = TypeVar("R")

Effect = Literal["pure", "idempotent", "once"]
"""What it means to run a function again when nobody knows whether it ran: nothing; nothing if
it is given the same idempotency key; or that it would happen twice."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Options(TypedDict, total=False):
    """What can be declared beside the callable.

    ``timeout`` is in seconds. Calls of ``sequential`` functions never overlap within a run.
    Calls of functions that ``requires_approval`` wait for somebody's word in runs that can wait.
    ``strict`` asks for the form of the schema that providers can enforce. ``parameters`` is a
    JSON Schema written by hand, used in place of the signature's.
    """

    name: str | None
    description: str | None
    effect: Effect
    sequential: bool
    timeout: float | None
    strict: bool
    requires_approval: bool
    parameters: Mapping[str, Any] | None


class Function(Generic[P, R]):
    """A callable that models can call too. Called from Python it is the callable itself."""

    def __init__(self, function: Callable[P, R], **options: Unpack[Options]) -> None:
        """Raises ValueError for a name that models do not accept.

        The signature is read on first use, so that annotations may name what is defined later.
        """
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.name = _checked_name(options.get("name") or _name_of(function))
        self.effect: Effect = options.get("effect", "once")
        self.sequential = options.get("sequential", False)
        self.timeout = options.get("timeout")
        self.strict = options.get("strict", False)
        self.requires_approval = options.get("requires_approval", False)
        self.is_async = is_coroutine_function(function)
        self._options = options
        if needs_its_frame(function):
            self._signature  # noqa: B018 - read now: later its surroundings are gone

    @classmethod
    def of(cls, function: Callable[..., Any], **options: Unpack[Options]) -> Function[..., Any]:
        """``function`` as a Function; one that is a Function already is taken as it is.

        Options given change that one's, in a copy.
        """
        if not isinstance(function, Function):
            return Function(function, **options)
        return function.replaced(**options) if options else function

    def replaced(self, **options: Unpack[Options]) -> Function[P, R]:
        """The same callable, declared otherwise."""
        return Function(self.function, **cast("Options", {**self._options, **options}))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The callable itself, without validation."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Function[..., R]:
        """A method declared as a Function, bound to its object as methods are."""
        if instance is None:
            return self
        bound = cast("Any", self.function).__get__(instance, owner)
        return Function(bound, **cast("Options", {**self._options, "name": self.name}))

    def __repr__(self) -> str:
        return f"Function({self.name!r})"

    @functools.cached_property
    def description(self) -> str:
        """As declared, else the docstring without its sections; may be empty."""
        declared = self._options.get("description")
        return declared if declared is not None else self._documentation.description

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object's."""
        return self.arguments.parameters

    @functools.cached_property
    def schema(self) -> ToolSchema:
        """The entry of a request's ``tools``."""
        function: dict[str, Any] = {"name": self.name}
        if self.description:
            function["description"] = self.description
        function["parameters"] = self.parameters
        if self.strict:
            function["strict"] = True
        return {"type": "function", "function": function}

    @functools.cached_property
    def arguments(self) -> Arguments:
        """What checks and converts the arguments of a call."""
        written = self._options.get("parameters")
        if written is not None:
            return WrittenArguments(written)
        return DeclaredArguments(
            self._signature, self._documentation, label=self.name, strict=self.strict
        )

    def call(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> Any:
        """Check ``arguments`` and call. A coroutine function is run to its end.

        Raises BadArgumentsError, and what the function raises.
        """
        value = self.invoke(arguments, context)
        return run_coroutine(value) if self.is_async else value

    async def acall(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> Any:
        """``call`` for async code; a plain function runs in a thread."""
        if not self.is_async:
            return await run_in_thread(self.invoke, arguments, context)
        return await self.invoke(arguments, context)

    def invoke(self, arguments: Mapping[str, Any], context: ToolContext | None) -> Any:
        """Check and call, here and now: a coroutine function's coroutine comes back as it is."""
        checked = self.arguments.validated(arguments)
        args, kwargs = self._signature.spread(checked, context)
        return cast("Callable[..., Any]", self.function)(*args, **kwargs)

    @functools.cached_property
    def _signature(self) -> Signature:
        return read_signature(self.function)

    @functools.cached_property
    def _documentation(self) -> Documentation:
        return read_docstring(self.function)


@overload
def function(function: Callable[P, R], /) -> Function[P, R]: ...


@overload
def function(
    **options: Unpack[Options],
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def function(
    function: Callable[P, R] | None = None, /, **options: Unpack[Options]
) -> Function[P, R] | Callable[[Callable[P, R]], Function[P, R]]:
    """Declare a function that models can call: ``@function`` or ``@function(name=…, …)``."""
    if function is not None:
        return Function(function, **options)
    return lambda declared: Function(declared, **options)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None) or getattr(
        getattr(function, "func", None), "__name__", None
    )
    return name if isinstance(name, str) else type(function).__name__


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"models accept names of 1–64 letters, digits, '_' and '-', not {name!r}: pass name="
        )
    return name
