"""Which tools there are: the ``TOOLS`` of the modules that AGENT_PLUGINS names."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from agents.time_limit import within
from llmbroker.models import ToolSchema

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Effect(StrEnum):
    """What it means to run a tool again when nobody knows whether it ran."""

    PURE = "pure"
    """Nothing: it only looks or computes."""
    IDEMPOTENT = "idempotent"
    """Nothing, if it is given the same idempotency key."""
    ONCE = "once"
    """It would happen twice: a run that does not know stops and asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function that a model may call, with the schema that the model reads.

    The function gets the model's arguments and nothing else. Calling the tool runs it in a
    thread of its own, whose result is waited for during ``timeout`` seconds.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., object]
    effect: Effect = Effect.ONCE
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ImproperlyConfigured(
                f"tool name {self.name!r}: models accept 1–64 letters, digits, '_' and '-'"
            )
        if inspect.iscoroutinefunction(self.function):
            raise ImproperlyConfigured(f"tool {self.name}: an agent's tool is a plain function")

    def __call__(self, **arguments: Any) -> object:
        """What the function returns. Raises what it raises, or TimeoutError."""
        return within(self.timeout, self.function, arguments)

    @property
    def schema(self) -> ToolSchema:
        """The tool as one entry of a request's ``tools``."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }


class ToolRegistry(Mapping[str, Tool]):
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        by_name: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in by_name:
                raise ImproperlyConfigured(f"two plugins in AGENT_PLUGINS have a tool {tool.name}")
            by_name[tool.name] = tool
        self._tools = MappingProxyType(by_name)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that are no tool here."""
        return [name for name in names if name not in self._tools]

    def chosen(self, names: Iterable[str]) -> ToolRegistry:
        """Only the tools of these names; a name whose plugin has gone is left out."""
        return ToolRegistry(self._tools[name] for name in names if name in self._tools)


@functools.cache
def installed_tools() -> ToolRegistry:
    """The tools of all plugins in AGENT_PLUGINS, loaded on first use."""
    return load_plugins(settings.AGENT_PLUGINS)


def load_plugins(paths: Iterable[str]) -> ToolRegistry:
    """The tools of the modules at these dotted paths."""
    return ToolRegistry(tool for path in paths for tool in _tools_of(path))


def _tools_of(path: str) -> list[Tool]:
    try:
        tools = list(importlib.import_module(path).TOOLS)
    except (ImportError, AttributeError, TypeError) as error:
        raise ImproperlyConfigured(
            f"AGENT_PLUGINS names {path!r}, which is no module with a sequence TOOLS: {error}"
        ) from error
    if not all(isinstance(tool, Tool) for tool in tools):
        raise ImproperlyConfigured(f"{path}.TOOLS holds something that is no agents Tool")
    return tools
