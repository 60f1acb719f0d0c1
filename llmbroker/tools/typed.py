"""Arguments after a Python signature: pydantic makes the schema and does the checking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, Required

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from llmbroker.tools.docstrings import Documentation
from llmbroker.tools.signature import EMPTY, Parameter, Signature


class TypedArguments:
    """The arguments of a function, by its signature and docstring."""

    def __init__(
        self, signature: Signature, documentation: Documentation, *, label: str, strict: bool
    ) -> None:
        fields = {
            each.name: _field(each, documentation.parameters.get(each.name))
            for each in signature.parameters
        }
        shape = TypedDict("arguments", fields)  # type: ignore[operator]
        shape.__pydantic_config__ = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
        self._adapter = TypeAdapter[dict[str, Any]](shape)
        self.parameters = self._adapter.json_schema()

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self._adapter.validate_python(dict(arguments))


def _field(parameter: Parameter, description: str | None) -> Any:
    hint = Any if parameter.hint is EMPTY else parameter.hint
    if description:
        hint = Annotated[hint, Field(description=description)]
    return Required[hint] if parameter.required else NotRequired[hint]
