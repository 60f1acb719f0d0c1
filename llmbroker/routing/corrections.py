"""What models refuse in a request, learned from their own words and kept per model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from llmbroker.models import LLMConfig
from llmbroker.wire.failure import Failure, FailureKind
from llmbroker.wire.params import OTHER_NAME


@dataclass(frozen=True, slots=True)
class Correction:
    """Parameters to leave out, and parameters that have another name there."""

    dropped: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)


_NONE = Correction()


class Corrections:
    """Corrections per (endpoint, model)."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Correction] = {}

    def of(self, config: LLMConfig) -> Correction:
        """What is known about ``config``."""
        return self._known.get((config.base_url, config.model), _NONE)

    def learn(self, config: LLMConfig, failure: Failure) -> None:
        """Take note of a parameter that the model refused."""
        if failure.kind is not FailureKind.UNSUPPORTED_PARAMETER or failure.param is None:
            return
        known = self.of(config)
        if failure.param in OTHER_NAME:
            known = replace(known, renamed={failure.param: OTHER_NAME[failure.param]})
        else:
            known = replace(known, dropped=known.dropped | {failure.param})
        self._known[config.base_url, config.model] = known
