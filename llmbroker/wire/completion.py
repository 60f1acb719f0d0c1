"""Reads a whole chat completion."""

from __future__ import annotations

import orjson

from llmbroker.models import Completion, Usage
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind


def parse_completion(body: bytes, *, origin: str, max_tokens: int | None = None) -> Completion:
    """The completion in ``body``; raises ExchangeError for a 200 that is none."""
    try:
        raw = orjson.loads(body)
        choice = raw["choices"][0]
        message = choice["message"]
    except (orjson.JSONDecodeError, LookupError, TypeError) as error:
        raise ExchangeError(Failure(FailureKind.INVALID_RESPONSE)) from error
    if not message.get("content") and not message.get("tool_calls"):
        raise ExchangeError(Failure(FailureKind.EMPTY_ANSWER))
    return Completion(
        message, read_usage(raw.get("usage")), raw.get("model"), choice.get("finish_reason")
    )


def read_usage(raw: object) -> Usage | None:
    """Token counts in any provider's spelling; None where there are none."""
    if not isinstance(raw, dict):
        return None
    return Usage(raw.get("prompt_tokens"), raw.get("completion_tokens"), raw.get("total_tokens"))
