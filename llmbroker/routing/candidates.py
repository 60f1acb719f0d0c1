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


class CandidateCache:
    """Building a candidate costs more than looking it up, and they are the same call after call."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._known: dict[tuple[str, str], Candidate] = {}
        self._capacity = capacity

    def of(self, config: LLMConfig, key: ApiKey) -> Candidate:
        """The candidate, kept as long as neither model nor key changes."""
        identity = (config.name, key.id)
        known = self._known.get(identity)
        if known is not None and known.key == key and known.config == config:
            return known
        if len(self._known) >= self._capacity:
            self._known.clear()
        candidate = self._known[identity] = Candidate.of(config, key)
        return candidate
