"""The functions of a kernel, by plugin and name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from llmbroker.prompts.errors import UnknownFunctionError
from llmbroker.prompts.prompt import Prompt
from llmbroker.tools.function import Function


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """One function, native or a prompt; models call ``function``, whose name is on the wire."""

    plugin_name: str
    name: str
    function: Function[..., Any] = field(repr=False)
    prompt: Prompt | None = field(default=None, repr=False)

    @property
    def full_name(self) -> str:
        """As templates and programs call it."""
        return f"{self.plugin_name}.{self.name}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of each parameter, by name."""
        properties: dict[str, Any] = self.function.parameters.get("properties", {})
        return properties


class Functions:
    """All of a kernel's functions."""

    def __init__(self) -> None:
        self._plugins: dict[str, dict[str, KernelFunction]] = {}

    def __iter__(self) -> Iterator[KernelFunction]:
        for plugin in self._plugins.values():
            yield from plugin.values()

    def add(self, function: KernelFunction) -> KernelFunction:
        """A function of the same name is replaced."""
        self._plugins.setdefault(function.plugin_name, {})[function.name] = function
        return function

    def find(self, name: str, *, near: str | None = None) -> KernelFunction:
        """The function called ``plugin.function``, ``plugin-function`` or ``function`` alone;
        then that of plugin ``near``, or the only one. Raises UnknownFunctionError."""
        plugin, _, function = name.replace("-", ".").rpartition(".")
        for each in (plugin,) if plugin else (near or "",):
            if function in self._plugins.get(each, {}):
                return self._plugins[each][function]
        found = [each for each in self if each.name == function and not plugin]
        if len(found) > 1:
            names = ", ".join(each.full_name for each in found)
            raise UnknownFunctionError(f"{name!r} may be any of {names}")
        if not found:
            raise UnknownFunctionError(f"there is no function {name!r}, only {self._names()}")
        return found[0]

    def select(self, names: tuple[str, ...]) -> list[KernelFunction]:
        """The functions of the plugins, and those, that ``names`` names; without names, all.

        Raises UnknownFunctionError.
        """
        chosen = {
            each.full_name: each
            for name in names or tuple(self._plugins)
            for each in self._named(name)
        }
        return list(chosen.values())

    def _named(self, name: str) -> list[KernelFunction]:
        plugin = self._plugins.get(name)
        return list(plugin.values()) if plugin is not None else [self.find(name)]

    def _names(self) -> str:
        return ", ".join(sorted(each.full_name for each in self)) or "none"
