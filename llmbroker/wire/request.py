"""Builds one chat-completions request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from llmbroker.models import LLMConfig, Message, ToolSchema, check_params
from llmbroker.wire.history import prepared
from llmbroker.wire.profiles import Profile, origin_of, profile_of
from llmbroker.wire.schema import fitted

_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP POST, ready to be sent. Its ``repr`` shows no key."""

    url: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def build_request(
    config: LLMConfig,
    api_key: str,
    messages: Sequence[Message],
    *,
    tools: Sequence[ToolSchema] | None = None,
    params: Mapping[str, object] | None = None,
    stream: bool = False,
    profile: Profile | None = None,
    dropped: frozenset[str] = frozenset(),
    renamed: Mapping[str, str] = _NOTHING,
) -> Request:
    """The request that asks ``config``'s model to answer ``messages``."""
    profile = profile or profile_of(config)
    body: dict[str, object] = {
        "model": config.model,
        "messages": prepared(messages, profile=profile, origin=origin_of(config)),
    }
    if params:
        check_params(params)
        body.update(params)
    if tools:
        body = {**config.tool_params, **body, "tools": fitted(tools, profile)}
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    body = {renamed.get(name, name): value for name, value in body.items() if name not in dropped}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {api_key}"}
    return Request(f"{config.base_url}/chat/completions", headers, orjson.dumps(body))
