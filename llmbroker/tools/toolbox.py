"""The tools of one loop: what the model is told of them, and what runs when it asks."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from llmbroker.models import ToolSchema
from llmbroker.text import clip, storable
from llmbroker.tools.context import ToolContext
from llmbroker.tools.function import Function
from llmbroker.tools.signature import context_names, is_coroutine_function
from llmbroker.tools.written import WrittenArguments

AnyTool = ToolSchema | Callable[..., Any] | Function[..., Any]
"""What ``tools`` may hold: a schema written by hand, a callable, a Function."""

Dispatch = Mapping[str, Callable[..., object]]
Named = TypeVar("Named")

# What is said round a name: a template's tokens, the namespace that a model was trained with
# (Harmony, Gemini) and the number that Kimi's calls bear.
_DEBRIS = re.compile(r"^(?:functions|default_api)[.:]|:\d+$|<\|.*$", re.DOTALL)


class Runnable(Protocol):
    """What can be run when a model asks for it."""

    @property
    def function(self) -> Callable[..., Any]:
        """What is called in the end."""
        ...

    @property
    def is_async(self) -> bool:
        """Whether ``invoke`` gives a coroutine."""
        ...

    @property
    def sequential(self) -> bool:
        """Whether its calls, and those of others like it, must not overlap."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds that one call may take."""
        ...

    def invoke(self, arguments: Mapping[str, Any], context: ToolContext | None) -> Any:
        """Check the arguments and call."""
        ...


class Toolbox:
    """Schemas and functions, whichever way they were given."""

    def __init__(
        self, tools: Sequence[AnyTool] | None = None, dispatch: Dispatch | None = None
    ) -> None:
        """``dispatch`` runs hand-written schemas, and wins over a callable's own function.

        Raises ValueError when two tools have one name, TypeError for what is no tool.
        """
        self.schemas: list[ToolSchema] | None = [] if tools else None
        self._runnables: dict[str, Runnable] = {}
        written: dict[str, Mapping[str, Any]] = {}
        for tool in tools or ():
            schema = self._add(tool)
            function = schema.get("function")
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                name = function["name"]
                if name in written:
                    raise ValueError(f"two tools are called {name}")
                written[name] = function.get("parameters") or {}
        for name, function in (dispatch or {}).items():
            self._runnables[name] = _runnable(function, written.get(name))

    @property
    def names(self) -> list[str]:
        """What can be run, sorted."""
        return sorted(self._runnables)

    def find(self, name: str) -> Runnable | None:
        """See ``find``."""
        return find(name, self._runnables)

    def _add(self, tool: AnyTool) -> ToolSchema:
        if isinstance(tool, dict):
            schema = tool
        elif callable(tool):
            function = Function.of(tool)
            schema = function.schema
            self._runnables[function.name] = function
        else:
            raise TypeError(f"a tool is a callable, a Function or a schema, not {tool!r}")
        if self.schemas is not None:
            self.schemas.append(schema)
        return schema


class Dispatched:
    """A callable of ``dispatch``, whose arguments follow the schema of its name, if any."""

    sequential = False
    timeout: float | None = None

    def __init__(
        self, function: Callable[..., object], parameters: Mapping[str, Any] | None
    ) -> None:
        self.function = function
        self._arguments = WrittenArguments(parameters) if parameters else None
        self.is_async = is_coroutine_function(function)

    def invoke(self, arguments: Mapping[str, Any], context: ToolContext | None) -> Any:
        """See Runnable.invoke."""
        given = self._arguments.validated(arguments) if self._arguments else dict(arguments)
        for name in self._context_names:
            given[name] = context or ToolContext()
        return self.function(**given)

    @functools.cached_property
    def _context_names(self) -> tuple[str, ...]:
        return context_names(self.function)


def find(name: str, dispatch: Mapping[str, Named]) -> Named | None:
    """The tool of that name, forgiving only what chat templates glue on to a name."""
    if name in dispatch:
        return dispatch[name]
    return dispatch.get(_DEBRIS.sub("", name.strip()).strip())


def unknown(name: str, known: Sequence[str]) -> str:
    """What the model is told when there is no such tool."""
    return f"Unknown tool {clip(storable(name), 64)}. Available tools: {', '.join(known) or 'none'}"


def _runnable(function: Callable[..., object], parameters: Mapping[str, Any] | None) -> Runnable:
    return function if isinstance(function, Function) else Dispatched(function, parameters)
