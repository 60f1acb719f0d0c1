"""What each family of providers demands, as data: profiles.toml beside this file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from llmbroker.models import LLMConfig


@dataclass(frozen=True, slots=True)
class Profile:
    """The demands of one family. The defaults suit an endpoint of which nothing is known.

    token_limit            the name of the parameter that limits the answer
    stream_usage           takes ``stream_options.include_usage``
    parallel_tool_calls    takes the parameter of that name
    system                 ``first``: one system message at the start, or ``anywhere``
    developer_role         knows the role ``developer`` (else it becomes ``system``)
    message_name           takes ``name`` on messages
    tool_name              wants the function's name on tool messages
    blank_text             takes messages without text
    prefill                a last assistant message is ``accepted``, ``refused`` (a user
                           message is added) or marked as a ``prefix``
    tool_id                the pattern of tool call ids; others are mapped to ids of
    tool_id_length         this many letters and digits
    assistant_after_tools  wants an assistant message between tool results and the user's next
    tool_turns_need_tools  refuses tool calls in the history of a request without tools
    schema                 how tool schemas are fitted: see ``wire.schema``
    own_fields             fields of its own that always go back to it
    echo_unknown           other fields that it sent go back to it too
    reasoning_with_tools   the field that must stand on assistant messages with tool calls
    foreign_signature      the thought signature for tool calls that another model made
    """

    family: str = "generic"
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105
    stream_usage: bool = True
    parallel_tool_calls: bool = True
    system: Literal["first", "anywhere"] = "first"
    developer_role: bool = False
    message_name: bool = True
    tool_name: bool = False
    blank_text: bool = False
    prefill: Literal["accepted", "refused", "prefix"] = "refused"
    tool_id: str = "[A-Za-z0-9_-]{1,64}"
    tool_id_length: int = 24
    assistant_after_tools: bool = False
    tool_turns_need_tools: bool = False
    schema: Literal["plain", "strict", "subset"] = "plain"
    own_fields: frozenset[str] = frozenset()
    echo_unknown: bool = True
    reasoning_with_tools: str = ""
    foreign_signature: str = ""


def profile_of(config: LLMConfig) -> Profile:
    """The profile for ``config``: by the host of its address, else by the port, then the model."""
    return _profile_at(config.base_url, config.model)


def origin_of(config: LLMConfig) -> str:
    """Who answers for ``config``: the value of ``x_origin`` in its messages."""
    return _origin_at(config.base_url)


@lru_cache(maxsize=4096)
def _profile_at(base_url: str, model: str) -> Profile:
    profile = PROFILES[_family_at(base_url)]
    for rule in _MODEL_RULES:
        if profile.family in rule.families and rule.pattern.search(model.lower()):
            profile = replace(profile, **rule.changes)
    return profile


@lru_cache(maxsize=4096)
def _origin_at(base_url: str) -> str:
    return f"{_family_at(base_url)} {urlsplit(base_url).netloc.rpartition('@')[2].lower()}"


def _family_at(base_url: str) -> str:
    address = urlsplit(base_url)
    host = (address.hostname or "").lower()
    for suffix, family in _HOSTS.items():
        if host == suffix or host.endswith(f".{suffix}"):
            return family
    # A port says something about a server next door, nothing about one behind TLS.
    return _PORTS.get(address.port or 0, "generic") if address.scheme == "http" else "generic"


@dataclass(frozen=True, slots=True)
class _ModelRule:
    pattern: re.Pattern[str]
    families: frozenset[str]
    changes: Mapping[str, Any]


_TABLE = tomllib.loads(Path(__file__).with_name("profiles.toml").read_text("utf-8"))
_FAMILIES: dict[str, dict[str, Any]] = {
    family: row for family, row in _TABLE.items() if family != "models"
}
_HOSTS = {host: family for family, row in _FAMILIES.items() for host in row.get("hosts", ())}
_PORTS = {port: family for family, row in _FAMILIES.items() for port in row.get("ports", ())}


def _profile(family: str, row: Mapping[str, Any]) -> Profile:
    demands = {name: value for name, value in row.items() if name not in ("hosts", "ports")}
    return Profile(family, **{**demands, "own_fields": frozenset(demands.get("own_fields", ()))})


def _model_rule(row: Mapping[str, Any]) -> _ModelRule:
    changes = {name: value for name, value in row.items() if name not in ("pattern", "families")}
    families = frozenset(row.get("families", _FAMILIES))
    return _ModelRule(re.compile(row["pattern"]), families, changes)


PROFILES: Mapping[str, Profile] = {
    family: _profile(family, row) for family, row in _FAMILIES.items()
}
"""Every profile by its family."""

_MODEL_RULES = tuple(_model_rule(row) for row in _TABLE["models"])
