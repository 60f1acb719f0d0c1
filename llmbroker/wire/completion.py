"""Reads a whole chat completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from llmbroker.models import Completion
from llmbroker.text import storable_json
from llmbroker.wire.assistant import Answer, completion_of, extras_of
from llmbroker.wire.content import read_content, read_reasoning
from llmbroker.wire.error_body import is_error, read_body
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.failures import detail_of, read_embedded_failure
from llmbroker.wire.lenient_json import as_mapping, loads, may_be_unstorable
from llmbroker.wire.tool_calls import read_tool_calls
from llmbroker.wire.usage import read_usage

__all__ = ["one_tool_call", "parse_completion", "read_usage"]


def parse_completion(
    body: bytes, *, origin: str, max_tokens: int | None = None, secrets: Sequence[str] = ()
) -> Completion:
    """The completion in the body of a 200 answer.

    ``origin`` is who sent it; ``max_tokens`` the limit that was asked for, by which a tool
    call cut short is told from a malformed one. Raises ExchangeError for an error in a 200,
    for what is no completion, and for an answer with neither text nor tool calls.
    """
    try:
        raw = loads(body)
    except ValueError as error:
        raise ExchangeError(_no_json(body, secrets)) from error
    if may_be_unstorable(body):
        raw = storable_json(raw)
    if is_error(raw):
        raise ExchangeError(read_embedded_failure(raw, secrets=secrets))
    choice = _first_choice(as_mapping(raw))
    if choice is None:
        raise ExchangeError(_no_completion(raw, secrets))
    if choice.get("error"):
        raise ExchangeError(read_embedded_failure(choice["error"], secrets=secrets))
    return completion_of(_answer(raw, choice), origin=origin, max_tokens=max_tokens)


def one_tool_call(completion: Completion) -> Completion:
    """``completion`` with its first tool call only.

    For ``parallel_tool_calls=False``, which many models cannot be told or do not heed.
    """
    calls = completion.tool_calls
    if calls is None or len(calls) == 1:
        return completion
    return replace(completion, message={**completion.message, "tool_calls": calls[:1]})


def _answer(raw: Mapping[str, Any], choice: Mapping[str, Any]) -> Answer:
    message = as_mapping(choice.get("message"))
    text, reasoning = read_content(message.get("content"))
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal  # the model's answer is that it will not: an answer all the same
    model, finish_reason, identity = raw.get("model"), choice.get("finish_reason"), raw.get("id")
    return Answer(
        text=text,
        reasoning=reasoning or read_reasoning(message),
        tool_calls=read_tool_calls(message, seed=_seed(raw)),
        extras=extras_of(message),
        usage=read_usage(raw.get("usage")),
        model=model if isinstance(model, str) else None,
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        id=identity if isinstance(identity, str) and identity else None,
    )


def _first_choice(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = raw.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


def _seed(raw: Mapping[str, Any]) -> str:
    return f"{raw.get('id')}/{raw.get('created')}"


def _no_json(body: bytes, secrets: Sequence[str]) -> Failure:
    said = read_body(body)
    what = "a web page" if said.is_html else "no JSON"
    text = detail_of(f"{what}: {said.message}" if body.strip() else "an empty body", secrets)
    return Failure(FailureKind.INVALID_RESPONSE, 200, text)


def _no_completion(raw: object, secrets: Sequence[str]) -> Failure:
    failure = read_embedded_failure(raw, secrets=secrets)
    if failure.kind is not FailureKind.SERVER_ERROR:
        return failure
    text = failure.detail or "the body has no choices"
    return Failure(FailureKind.INVALID_RESPONSE, 200, text, code=failure.code)
