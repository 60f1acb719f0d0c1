"""Assembles a streamed chat completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from llmbroker.models import Completion
from llmbroker.wire.completion import read_usage
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.sse import ServerSentEvent


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer. ``index`` numbers the call that a ``tool_call`` belongs to."""

    kind: Literal["text", "reasoning", "tool_call"]
    text: str
    index: int | None = None
    id: str | None = None
    name: str | None = None


class StreamAssembler:
    """Turns the events of one stream into deltas and, at its end, the completion."""

    def __init__(self, origin: str, *, max_tokens: int | None = None) -> None:
        self._text = ""
        self._finish: str | None = None
        self._done = False
        self._calls: list[dict[str, Any]] = []
        self._usage: object = None
        self._model: str | None = None

    @property
    def has_content(self) -> bool:
        """Whether any text, reasoning or tool call has arrived."""
        return bool(self._text or self._calls)

    @property
    def done(self) -> bool:
        """Whether ``[DONE]`` has arrived: nothing more is to be read."""
        return self._done

    def feed(self, event: ServerSentEvent) -> list[Delta]:
        """The deltas in ``event``; raises ExchangeError for an error or a malformed chunk."""
        if event.data == b"[DONE]":
            self._done = True
            return []
        try:
            chunk = orjson.loads(event.data)
            self._usage = chunk.get("usage") or self._usage
            self._model = chunk.get("model") or self._model
            choice = (chunk.get("choices") or [{}])[0]
            self._finish = choice.get("finish_reason") or self._finish
            delta = choice.get("delta") or {}
        except (orjson.JSONDecodeError, AttributeError) as error:
            raise ExchangeError(Failure(FailureKind.INVALID_RESPONSE)) from error
        self._calls += delta.get("tool_calls") or []
        text = delta.get("content") or ""
        self._text += text
        return [Delta("text", text)] if text else []

    def finish(self) -> Completion:
        """The whole answer; raises ExchangeError when the stream was cut or said nothing."""
        if not self._done and self._finish is None:
            raise ExchangeError(Failure(FailureKind.STREAM_CUT))
        if not self.has_content:
            raise ExchangeError(Failure(FailureKind.EMPTY_ANSWER))
        message: dict[str, Any] = {"role": "assistant", "content": self._text}
        if self._calls:
            message["tool_calls"] = self._calls
        return Completion(message, read_usage(self._usage), self._model, self._finish)
