"""A candidate is one model paid with one key: what a call can be routed to."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from llmbroker.models import ApiKey, LLMConfig
from llmbroker.routing.verdict import Cools

NO_KEY = ApiKey("", "")
"""What a model is called with that needs no key, such as a local server."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """``name`` is the configured model's; ``ids`` names this candidate's four cooldowns, from the
    widest to the narrowest, of which ``model_id`` is the model's."""

    config: LLMConfig
    key: ApiKey
    name: str
    model_id: str = field(repr=False, compare=False)
    ids: dict[Cools, str] = field(repr=False, compare=False)

    @classmethod
    def of(cls, config: LLMConfig, key: ApiKey) -> Candidate:
        """The candidate of ``config`` paid with ``key``."""
        # A tenant's own address must not be able to cool one that all use.
        side = "guarded" if config.guarded else "trusted"
        host = f"{side} {urlsplit(config.base_url).netloc}"
        ids = {
            Cools.HOST: f"host {host}",
            Cools.MODEL: f"model {side} {config.base_url} {config.model}",
            Cools.KEY: f"key {host} {key.id} {key.version}",
            Cools.KEY_ON_MODEL: f"key {host} {key.id} {key.version} {config.model}",
        }
        return cls(config, key, config.name, ids[Cools.MODEL], ids)
