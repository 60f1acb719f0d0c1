"""Which tools there are: the ``TOOLS`` of the modules that AGENT_PLUGINS names."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from llmbroker import Function
from llmbroker.tools.toolbox import Toolbox
from tenants.errors import InvalidInput

Tool = Function[..., Any]
"""A function with its schema; ``effect`` says what it means to run it again. A plugin declares
one with ``@llmbroker.function``."""


class ToolRegistry(Mapping[str, Tool]):
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ImproperlyConfigured(f"two plugins in AGENT_PLUGINS have a tool {tool.name}")
            self._tools[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @functools.cached_property
    def toolbox(self) -> Toolbox:
        """The tools as the engine offers and runs them."""
        return Toolbox(list(self._tools.values()))

    def require(self, names: Iterable[str]) -> None:
        """Raise InvalidInput for the first of ``names`` that is no tool here."""
        for name in names:
            if name not in self._tools:
                raise InvalidInput(
                    f"Unknown tool {name}. Available tools: {', '.join(sorted(self._tools))}.",
                    code="unknown_tool",
                    param="tools",
                )

    def chosen(self, names: Iterable[str]) -> ToolRegistry:
        """Only the tools of these names; a name whose plugin has gone is left out."""
        return ToolRegistry(self._tools[name] for name in names if name in self._tools)


@functools.cache
def installed_tools() -> ToolRegistry:
    """The tools of all plugins in AGENT_PLUGINS, loaded on first use."""
    return load_plugins(settings.AGENT_PLUGINS)


def load_plugins(paths: Iterable[str]) -> ToolRegistry:
    """The tools of the modules at these dotted paths. Raises ImproperlyConfigured."""
    return ToolRegistry(tool for path in paths for tool in _tools_of(path))


def _tools_of(path: str) -> list[Tool]:
    try:
        tools = list(importlib.import_module(path).TOOLS)
    except (ImportError, AttributeError, TypeError) as error:
        raise ImproperlyConfigured(
            f"AGENT_PLUGINS names {path!r}, which is no module with a sequence TOOLS: {error}"
        ) from error
    if not all(isinstance(tool, Function) for tool in tools):
        raise ImproperlyConfigured(f"{path}.TOOLS holds what is not declared as a function")
    return tools
