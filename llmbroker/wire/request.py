"""Builds one chat-completions request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from llmbroker.models import LLMConfig, Message, ToolSchema, check_params
from llmbroker.text import storable_json
from llmbroker.wire.history import has_role, prepared
from llmbroker.wire.params import OTHER_NAME, asked
from llmbroker.wire.profiles import Profile, origin_of, profile_of
from llmbroker.wire.schema import fitted_json
from llmbroker.wire.scrub import scrubbed

_NOTHING: Mapping[str, str] = {}
_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")
_TOOL_PARAMS = ("tool_choice", "parallel_tool_calls")


class UnsendableKeyError(ValueError):
    """The key cannot stand in a header. Everything else of a request that is wrong is the caller's
    and a plain ValueError."""


@dataclass(slots=True, repr=False)
class Request:
    """An HTTP POST, ready to be sent."""

    url: str
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        """Without the headers, which hold the key, and without what the user wrote."""
        return f"Request({scrubbed(self.url)!r}, {len(self.body)} bytes)"


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
    """The request that asks ``config``'s model to go on after ``messages``.

    ``params`` win over the model's ``tool_params``, which are sent whenever tools are.
    ``dropped`` and ``renamed`` are what earlier refusals taught (see ``wire.params``). An
    empty ``api_key`` sends no Authorization. Raises ValueError for a key that cannot stand
    in a header, a parameter that the engine sets itself, a ``tool_choice`` that demands a
    tool where there is none, and a message without a role.
    """
    profile = profile or profile_of(config)
    check_tool_choice(tools, params)
    body: dict[str, Any] = {
        "model": config.model,
        "messages": prepared(
            messages, profile=profile, origin=origin_of(config), with_tools=bool(tools)
        ),
    }
    body.update(_params(config, profile, params or {}, with_tools=bool(tools)))
    if stream:
        body["stream"] = True
        if profile.stream_usage:
            body["stream_options"] = {"include_usage": True}
    if dropped or renamed:
        body = {
            renamed.get(name, name): value for name, value in body.items() if name not in dropped
        }
    encoded = _encoded(body)
    if tools:
        encoded = b'%b,"tools":%b}' % (encoded[:-1], fitted_json(tools, profile))
    return Request(f"{config.base_url}/chat/completions", _headers(api_key, stream=stream), encoded)


def check_messages(messages: Sequence[Message]) -> None:
    """Refuse what is no conversation. Raises ValueError."""
    for message in messages or (None,):
        if not has_role(message):
            raise ValueError("messages is a list of at least one {'role': …, 'content': …}")


def check_tool_choice(
    tools: Sequence[ToolSchema] | None, params: Mapping[str, object] | None
) -> None:
    """Refuse a ``tool_choice`` that demands a tool when no tools are given. Raises ValueError."""
    choice = params.get("tool_choice") if params else None
    if not tools and choice not in (None, "none", "auto"):
        raise ValueError("tool_choice demands a tool call, but no tools are given")


def _params(
    config: LLMConfig, profile: Profile, params: Mapping[str, object], *, with_tools: bool
) -> dict[str, object]:
    if not params and not config.tool_params:
        return {}
    check_params(params)
    sent = asked(params, config.tool_params if with_tools else {})
    if not with_tools:
        for name in _TOOL_PARAMS:
            sent.pop(name, None)
    if not profile.parallel_tool_calls:
        sent.pop("parallel_tool_calls", None)
    _name_token_limit(sent, profile)
    return sent


def _name_token_limit(sent: dict[str, object], profile: Profile) -> None:
    """Send the token limit once, under the name that the provider knows."""
    given = {name: sent.pop(name) for name in OTHER_NAME if name in sent}
    if given:
        first = next(iter(given.values()))
        sent[profile.token_limit] = given.get(profile.token_limit, first)


def _headers(api_key: str, *, stream: bool) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream" if stream else "application/json",
    }
    api_key = api_key.strip()
    if api_key:
        if not _HEADER_SAFE.fullmatch(api_key):
            raise UnsendableKeyError("the API key has characters that cannot stand in a header")
        headers["Authorization"] = f"Bearer {api_key}"
    return headers


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:  # half a surrogate pair, a number over 64 bits, or no JSON at all
        return orjson.dumps(storable_json(body))
