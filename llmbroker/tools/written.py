"""Arguments after a JSON Schema written by hand."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llmbroker.text import clip, storable
from llmbroker.tools.fitting import fitted, says_more
from llmbroker.tools.outcomes import ArgumentProblem, BadArgumentsError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_LONGEST_REASON = 200


class WrittenArguments:
    """The arguments that a hand-written schema allows; it is never changed."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters: dict[str, Any] = dict(parameters)
        self._says_more = says_more(self.parameters)

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See Arguments.validated."""
        problems: list[ArgumentProblem] = []
        given: dict[str, Any] = fitted(dict(arguments), self.parameters, problems)
        if not problems and self._says_more:
            problems = self._further_problems(given)
        if problems:
            raise BadArgumentsError(problems)
        return given

    def _further_problems(self, arguments: dict[str, Any]) -> list[ArgumentProblem]:
        try:
            return [
                ArgumentProblem(
                    error.json_path.removeprefix("$").removeprefix(".") or "(all)",
                    clip(storable(error.message), _LONGEST_REASON),
                )
                for error in self._validator.iter_errors(arguments)
                # Checked already, and with more indulgence.
                if error.validator != "required"
            ]
        except Exception:  # noqa: BLE001 - a schema that makes no sense forbids nothing
            return []

    @functools.cached_property
    def _validator(self) -> Validator:
        # Imported where a schema needs it: few do, and it takes longer than all of llmbroker.
        from jsonschema import Draft202012Validator  # noqa: PLC0415
        from referencing import Registry  # noqa: PLC0415

        # An empty registry: without one, whatever a $ref names is fetched from the network.
        return Draft202012Validator(self.parameters, registry=Registry())
