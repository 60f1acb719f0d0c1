"""Which tools there are, by the names that models call them by: ``plugin-function``.

The installation's own come from the modules that AGENT_PLUGINS names; what a tenant adds to
them is in ``agents.tool_sources``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from llmbroker import Function
from llmbroker.prompts.naming import wire_name
from llmbroker.tools.function import Effect
from llmbroker.tools.toolbox import Toolbox
from tenants.errors import InvalidInput

Source = Literal["native", "prompt", "http", "mcp", "client"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that runs can use, and where it comes from; it answers to its aliases too."""

    function: Function[..., Any]
    source: Source = "native"
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As models call it."""
        return self.function.name

    @property
    def description(self) -> str:
        """What models read of it."""
        return self.function.description

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return self.function.parameters

    @property
    def effect(self) -> Effect:
        """What it means to run it again."""
        return self.function.effect

    @property
    def requires_approval(self) -> bool:
        """Whether its calls wait for somebody's word."""
        return self.function.requires_approval

    def under(self, name: str) -> Tool:
        """The same tool, called ``name``."""
        if name == self.name:
            return self
        return replace(self, function=self.function.replaced(name=name))


class ToolRegistry(Mapping[str, Tool]):
    """Tools by name; a look-up finds them by their aliases as well."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, str] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ImproperlyConfigured(f"two tools are called {tool.name}")
            self._tools[tool.name] = tool
            for alias in tool.aliases:
                self._aliases.setdefault(alias, tool.name)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name if name in self._tools else self._aliases[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @functools.cached_property
    def toolbox(self) -> Toolbox:
        """The tools as the engine offers and runs them."""
        return Toolbox([tool.function for tool in self.values()])

    def require(self, names: Iterable[str], *, param: str = "tools") -> None:
        """Raise InvalidInput for the first of ``names`` that is no tool here."""
        for name in names:
            if name not in self:
                raise InvalidInput(
                    f"Unknown tool {name}. Available tools: {', '.join(sorted(self))}.",
                    code="unknown_tool",
                    param=param,
                )

    def chosen(self, names: Iterable[str]) -> ToolRegistry:
        """Only the tools of these names, called by them; a name that has gone is left out."""
        asked: dict[str, Tool] = {}
        for name in names:
            if name in self:
                asked.setdefault(self[name].name, self[name].under(name))
        return ToolRegistry(asked.values())

    def with_tools(self, tools: Iterable[Tool]) -> ToolRegistry:
        """These and ``tools``; where a name is taken already, what has it keeps it."""
        further = {tool.name: tool for tool in tools if tool.name not in self}
        return ToolRegistry([*self.values(), *further.values()])


@functools.cache
def installed_tools() -> ToolRegistry:
    """The tools of all plugins in AGENT_PLUGINS, loaded on first use."""
    return load_plugins(settings.AGENT_PLUGINS)


@functools.lru_cache(maxsize=256)
def chosen_of_installed(names: tuple[str, ...]) -> ToolRegistry:
    """The installed tools of these names, made once: their schemas take longer than a run."""
    return installed_tools().chosen(names)


def load_plugins(paths: Iterable[str]) -> ToolRegistry:
    """The tools of the modules at these dotted paths. Raises ImproperlyConfigured."""
    return ToolRegistry(tool for path in paths for tool in _tools_of(path))


def _tools_of(path: str) -> Iterator[Tool]:
    """A plugin's tools. They keep answering to their plain names, the first of each name does."""
    try:
        module = importlib.import_module(path)
        functions = list(module.TOOLS)
    except (ImportError, AttributeError, TypeError) as error:
        raise ImproperlyConfigured(
            f"AGENT_PLUGINS names {path!r}, which is no module with a sequence TOOLS: {error}"
        ) from error
    for function in functions:
        if not isinstance(function, Function):
            raise ImproperlyConfigured(f"{path}.TOOLS holds what is not declared as a function")
        try:
            name = wire_name(_plugin_name(module), function.name)
        except ValueError as error:
            raise ImproperlyConfigured(f"a tool of {path} has an unfit name: {error}") from error
        yield Tool(function.replaced(name=name), aliases=(function.name,))


def _plugin_name(module: ModuleType) -> str:
    """What the module calls itself in ``PLUGIN``, else the last part of its path."""
    return str(getattr(module, "PLUGIN", module.__name__.rpartition(".")[2]))
