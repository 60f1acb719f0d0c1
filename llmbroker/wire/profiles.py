"""What each family of providers demands, as data."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from llmbroker.models import LLMConfig


@dataclass(frozen=True, slots=True)
class Profile:
    """The demands of one family of providers."""

    family: str


GENERIC = Profile("generic")


def profile_of(config: LLMConfig) -> Profile:
    """The profile that fits ``config.base_url``."""
    return GENERIC


def origin_of(config: LLMConfig) -> str:
    """Who answers for ``config``: what ``x_origin`` of its messages says."""
    return f"{profile_of(config).family} {urlsplit(config.base_url).netloc}"
