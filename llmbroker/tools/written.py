"""Arguments after a JSON Schema written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class WrittenArguments:
    """The arguments that a hand-written schema allows."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = dict(parameters)

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return dict(arguments)
