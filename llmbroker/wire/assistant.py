"""Makes a Completion of what an answer held, whether it came whole or in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llmbroker.models import Completion, Message, Usage
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.tool_calls import arguments_object

_PLAIN_CALL_KEYS = frozenset({"id", "type", "function"})
_PLAIN_FUNCTION_KEYS = frozenset({"name", "arguments"})

NOT_EXTRA = frozenset({"role", "content", "tool_calls", "function_call", "annotations", "index"})
"""Fields of an assistant message that are read, or that nobody needs back."""


@dataclass(slots=True)
class Answer:
    """The parts of one answer. ``extras`` are the provider's own fields of the message."""

    text: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    extras: dict[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    model: str | None = None
    finish_reason: str | None = None
    id: str | None = None


def completion_of(answer: Answer, *, origin: str, max_tokens: int | None) -> Completion:
    """The completion; raises ExchangeError when the answer broke down or holds nothing."""
    if answer.finish_reason == "error":  # OpenRouter, when the model behind it broke down
        raise ExchangeError(Failure(FailureKind.SERVER_ERROR, 200, code="error"))
    if not answer.text.strip() and not answer.tool_calls:
        raise ExchangeError(_emptiness(answer))
    message: Message = {"role": "assistant", "content": answer.text or None}
    if answer.tool_calls:
        message["tool_calls"] = answer.tool_calls
    message.update(answer.extras)
    if answer.extras or any(_has_extras(call) for call in answer.tool_calls):
        message["x_origin"] = origin
    finish_reason = "length" if _was_cut(answer, max_tokens) else answer.finish_reason
    return Completion(
        message,
        answer.usage,
        answer.model,
        finish_reason,
        answer.reasoning or None,
        provider_id=answer.id,
    )


def _has_extras(call: Mapping[str, Any]) -> bool:
    return bool(call.keys() - _PLAIN_CALL_KEYS or call["function"].keys() - _PLAIN_FUNCTION_KEYS)


def extras_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's own fields of ``message`` that hold something."""
    return {key: value for key, value in message.items() if key not in NOT_EXTRA and value}


def _emptiness(answer: Answer) -> Failure:
    reason = answer.finish_reason
    if reason is not None and reason.startswith("content_filter"):
        return Failure(FailureKind.CONTENT_POLICY, 200, code=reason)
    if reason == "length":
        return Failure(FailureKind.LIMIT_REACHED, 200, code=reason)
    detail = "the model only reasoned" if answer.reasoning else ""
    return Failure(FailureKind.EMPTY_ANSWER, 200, detail, code=reason)


def _was_cut(answer: Answer, max_tokens: int | None) -> bool:
    """Whether the token limit cut a tool call, though some servers then say ``tool_calls``."""
    if max_tokens is None or answer.usage is None or answer.usage.completion_tokens is None:
        return False
    return answer.usage.completion_tokens >= max_tokens and any(
        arguments_object(call["function"]["arguments"]) is None for call in answer.tool_calls
    )
