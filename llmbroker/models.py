"""The engine's data: free of I/O and of secrets, safe to log, and never changed once made.

All here is frozen but Call and Completion, of which each call makes several: a frozen dataclass
takes three times as long to make. So it is with replies and with the calls and results of tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

# The request fields that the engine builds itself: a caller who sets them would silently
# send the call elsewhere or flip its streaming.
RESERVED_PARAMS = frozenset({"model", "messages", "stream", "stream_options", "tools"})

Message = dict[str, Any]
"""One chat message in OpenAI's shape."""

ToolSchema = dict[str, Any]
"""One entry of ``tools`` in OpenAI's shape."""


def check_params(params: Mapping[str, object]) -> None:
    """Refuse request parameters that the engine builds itself.

    >>> check_params({"model": "other"})
    Traceback (most recent call last):
    ValueError: request parameter 'model' is set by llmbroker and cannot be passed
    """
    for name in params:
        if name in RESERVED_PARAMS:
            raise ValueError(f"request parameter {name!r} is set by llmbroker and cannot be passed")


def check_score(score: float) -> None:
    """Refuse a rating outside 0 … 1. Raises ValueError."""
    if isinstance(score, bool) or not 0.0 <= score <= 1.0:
        raise ValueError(f"a quality score lies within 0.0 and 1.0, got {score!r}")


@lru_cache(maxsize=4096)
def is_address(url: str) -> bool:
    """Whether ``url`` names a host that http or https can reach.

    >>> is_address("http://[::1]:8000/v1"), is_address("http://[::1/v1"), is_address("api.test/v1")
    (True, False, False)
    """
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of brackets that do not close, or a port that is no number
        return False


@dataclass(frozen=True, slots=True)
class LLMConfig:
    """One model at one endpoint. It names its key (``api_key_ref``) and never holds it.

    ``weight`` (0 … 1) is the quality expected before any rating; ``parallel`` caps calls in
    flight; ``tool_params`` are sent whenever tools are; ``context_window`` is in tokens.
    ``guarded`` says that ``base_url`` comes from somebody who is not trusted with our network.
    """

    name: str
    base_url: str
    model: str
    api_key_ref: str
    parallel: int | None = None
    weight: float = 0.0
    alias: str | None = None
    tool_params: Mapping[str, object] = field(default_factory=dict, hash=False)
    context_window: int | None = None
    guarded: bool = False

    def __post_init__(self) -> None:
        check_params(self.tool_params)
        if not is_address(self.base_url):
            raise ValueError(f"{self.name}: base_url is no http or https address of a host")
        if not 0.0 <= self.weight <= 1.0:
            raise ValueError(f"{self.name}: weight lies within 0.0 and 1.0, got {self.weight}")
        if self.parallel is not None and self.parallel < 1:
            raise ValueError(f"{self.name}: parallel is at least 1, got {self.parallel}")
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))
        object.__setattr__(self, "tool_params", dict(self.tool_params))


class CallStatus(Enum):
    """How one attempt ended; ``STARTED`` is an intent whose outcome is not written yet."""

    STARTED = "started"
    OK = "ok"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    SUPERSEDED = "superseded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; ``None`` is unknown, which is not 0."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """Sum of the known figures; unknown only where both are unknown."""
        return Usage(
            _add(self.prompt_tokens, other.prompt_tokens),
            _add(self.completion_tokens, other.completion_tokens),
            _add(self.total_tokens, other.total_tokens),
            _add(self.cached_tokens, other.cached_tokens),
            _add(self.reasoning_tokens, other.reasoning_tokens),
        )

    def as_dict(self) -> dict[str, int | None]:
        """The figures by name, in OpenAI's spelling for the first three."""
        return {name: getattr(self, name) for name in USAGE_FIELDS}


USAGE_FIELDS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cached_tokens",
    "reasoning_tokens",
)


def _add(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


class KeySource(Enum):
    """Whose key paid for a call."""

    OWN = "own"
    SHARED = "shared"
    INSTALLATION = "installation"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key to call with. Its value prints nowhere.

    ``id`` tells keys apart and ``version`` the values that one key has had, so that a replaced
    value does not inherit the cooldown of the old one.
    """

    id: str
    value: str = field(repr=False)
    source: KeySource = KeySource.INSTALLATION
    version: str = ""


@dataclass(slots=True)
class Call:
    """One attempt, as the journal holds it. ``score`` is its newest rating, filled on reads only.

    ``ts`` is the start (UTC); durations are in milliseconds. ``scope`` is the caller's;
    ``llm_name`` the configured model, ``model`` what it was asked for, ``model_answered``
    what the provider says it used, ``provider_id`` its own id of the answer. ``error_detail`` is
    scrubbed of keys. ``cost_micros`` are millionths of a US dollar, by the list that ``price``
    names. ``run`` and ``step`` say whose part the call was (``llmbroker.attribution``).
    """

    id: str
    llm_name: str
    operation: str | None
    trace_id: str | None
    status: CallStatus | None
    ts: datetime | None = None
    http_status: int | None = None
    latency_ms: int | None = None
    error_detail: str | None = None
    usage: Usage | None = None
    score: float | None = None
    scope: str | None = None
    cooldown_until: datetime | None = None
    base_url: str | None = None
    model: str | None = None
    model_answered: str | None = None
    key_id: str | None = None
    key_source: KeySource | None = None
    error_class: str | None = None
    first_token_ms: int | None = None
    streamed: bool = False
    provider_id: str | None = None
    run: str | None = None
    step: int | None = None
    cost_micros: int | None = None
    price: str | None = None


@dataclass(frozen=True, slots=True)
class Rated:
    """One rated call: what the task was, who did it, and how well (0 … 1)."""

    operation: str | None
    llm_name: str
    score: float


@dataclass(slots=True)
class Completion:
    """What one exchange with a provider gave, before anybody is told.

    ``message`` is the assistant message as it goes back into the history: cleaned, with the
    provider's own extra fields kept.
    """

    message: Message
    usage: Usage | None
    model_answered: str | None
    finish_reason: str | None
    reasoning: str | None = None
    provider_id: str | None = None

    @property
    def text(self) -> str:
        """The answer's text, empty when the model only asked for tools."""
        return self.message.get("content") or ""

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None:
        """The calls that the model asks for, or None."""
        return self.message.get("tool_calls") or None
