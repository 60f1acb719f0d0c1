"""Arguments after a Python signature, with pydantic called in only where it is needed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llmbroker.tools.docstrings import Documentation
from llmbroker.tools.plain import plain_parameters
from llmbroker.tools.signature import Signature
from llmbroker.tools.strict import strict_form

if TYPE_CHECKING:
    from llmbroker.tools.typed import TypedArguments


class DeclaredArguments:
    """The arguments of a function, by its signature and docstring."""

    def __init__(
        self, signature: Signature, documentation: Documentation, *, label: str, strict: bool
    ) -> None:
        self._signature = signature
        self._documentation = documentation
        self._label = label
        self._strict = strict

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """See Arguments.parameters.

        Raises TypeError for a hint that has no JSON Schema, ValueError for a signature that has
        no strict form.
        """
        plain = plain_parameters(self._signature, self._documentation)
        parameters = plain if plain is not None else self._typed.parameters
        if not self._strict:
            return parameters
        try:
            return strict_form(parameters)
        except ValueError as error:
            raise ValueError(f"function {self._label} has no strict schema: {error}") from error

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See Arguments.validated."""
        return self._typed.validated(arguments)

    @functools.cached_property
    def _typed(self) -> TypedArguments:
        # On first use: importing pydantic takes longer than importing all of llmbroker.
        from llmbroker.tools.typed import TypedArguments  # noqa: PLC0415

        return TypedArguments(
            self._signature, self._documentation, label=self._label, strict=self._strict
        )
