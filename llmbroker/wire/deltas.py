"""Assembles a streamed chat completion."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from llmbroker.models import Completion
from llmbroker.text import storable, storable_json
from llmbroker.wire.assistant import Answer, completion_of, extras_of
from llmbroker.wire.content import read_content, read_reasoning
from llmbroker.wire.error_body import is_error
from llmbroker.wire.extras import ExtrasCollector
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.failures import detail_of, read_embedded_failure
from llmbroker.wire.lenient_json import as_mapping, loads
from llmbroker.wire.sse import ServerSentEvent
from llmbroker.wire.surrogates import SurrogateJoiner
from llmbroker.wire.tool_calls import raw_calls
from llmbroker.wire.tool_deltas import ToolCallAssembler
from llmbroker.wire.usage import newest, read_usage

_logger = logging.getLogger(__name__)

# A piece of the answer in an event that cannot be read is lost; what proxies put in is not missed.
_HOLDS_A_PIECE = re.compile(
    rb'"(?:content|text|refusal|reasoning\w*|thinking|arguments|name|tool_calls)"\s*:\s*(?:"[^"]|[\[{])'
)
_MAX_ANSWER = 32 * 1024 * 1024
_KEEP_ALIVES = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer: text, reasoning, or of a tool call its arguments.

    ``index`` numbers the tool call from 0, in the order of ``Completion.tool_calls``. ``id``
    comes with a call's first delta, ``name`` whenever a piece of the name does.
    """

    kind: Literal["text", "reasoning", "tool_call"]
    text: str
    index: int | None = None
    id: str | None = None
    name: str | None = None


OnDelta = Callable[[Delta | None], object]
"""Is told each piece of an answer as it arrives; None where what was told so far is void, since
the answer broke off and is asked for again from its beginning. It must return at once."""


class StreamAssembler:
    """Turns the events of one stream into deltas and, at its end, into the completion."""

    def __init__(
        self, origin: str, *, max_tokens: int | None = None, secrets: Sequence[str] = ()
    ) -> None:
        """``origin`` is who answers; ``max_tokens`` the limit that was asked for."""
        self._origin = origin
        self._max_tokens = max_tokens
        self._secrets = secrets
        self._answer = Answer()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._joiners = {"text": SurrogateJoiner(), "reasoning": SurrogateJoiner()}
        self._tool_calls = ToolCallAssembler()
        self._extras = ExtrasCollector()
        self._seed = ""
        self._size = 0
        self._done = False
        self._has_noise = False
        self._has_content = False

    @property
    def has_content(self) -> bool:
        """Whether any text, reasoning or tool call has been given out."""
        return self._has_content

    @property
    def is_whole(self) -> bool:
        """Whether the model has said that it has finished; usage may still follow."""
        return self._done or self._answer.finish_reason is not None

    @property
    def done(self) -> bool:
        """Whether ``[DONE]`` has come: there is nothing more to read."""
        return self._done

    def feed(self, event: ServerSentEvent) -> list[Delta]:
        """The deltas in ``event``.

        Raises ExchangeError for an error event, an error inside a chunk and a broken chunk.
        """
        data = event.data.strip()
        if not data or self._done or event.event in _KEEP_ALIVES:
            return []
        if data == b"[DONE]":
            self._done = True
            return []
        deltas = list(self._read_chunk(self._chunk(event, data)))
        self._has_content = self._has_content or bool(deltas)
        return deltas

    def finish(self) -> Completion:
        """The whole answer, once the stream has ended.

        Raises ExchangeError when it ended too early, broke down or holds no answer.
        """
        answer = self._answer
        if answer.finish_reason is None and (self._has_noise or not self._done):
            detail = "the stream ended without a finish_reason" + " or [DONE]" * (not self._done)
            raise ExchangeError(Failure(FailureKind.STREAM_CUT, 200, detail))
        answer.text = "".join(self._text) + self._joiners["text"].flush()
        answer.reasoning = "".join(self._reasoning) + self._joiners["reasoning"].flush()
        answer.tool_calls = self._tool_calls.calls()
        answer.extras = self._extras.collected()
        return completion_of(answer, origin=self._origin, max_tokens=self._max_tokens)

    def _chunk(self, event: ServerSentEvent, data: bytes) -> Mapping[str, Any]:
        self._size += len(data)
        if self._size > _MAX_ANSWER:
            detail = "the streamed answer is over 32 MiB"
            raise ExchangeError(Failure(FailureKind.INVALID_RESPONSE, 200, detail))
        try:
            chunk = loads(data)
        except ValueError as error:
            if self._has_content and _is_noise(event):
                return self._passed_over(data)
            raise ExchangeError(self._broken_chunk(event, data)) from error
        if event.event == "error" or is_error(chunk):
            raise ExchangeError(read_embedded_failure(chunk, secrets=self._secrets))
        if not isinstance(chunk, dict):
            raise ExchangeError(self._broken_chunk(event, data))
        return chunk

    def _passed_over(self, data: bytes) -> Mapping[str, Any]:
        """It may have told of an error: from now on the model itself must say that it is done."""
        self._has_noise = True
        said = detail_of(data[:200].decode("utf-8", "replace"), self._secrets)
        _logger.warning("passed over an event that is no chunk: %.100s", said)
        return {}

    def _broken_chunk(self, event: ServerSentEvent, data: bytes) -> Failure:
        text = data[:400].decode("utf-8", "replace")
        if event.event == "error":
            return read_embedded_failure(text, secrets=self._secrets)
        if event.cut:
            return Failure(FailureKind.STREAM_CUT, 200, "the stream ended inside a chunk")
        detail = detail_of(f"a chunk is no JSON object: {text}", self._secrets)
        return Failure(FailureKind.INVALID_RESPONSE, 200, detail)

    def _read_chunk(self, chunk: Mapping[str, Any]) -> Iterator[Delta]:
        self._read_facts(chunk)
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (None, 0):
                yield from self._read_choice(choice)

    def _read_facts(self, chunk: Mapping[str, Any]) -> None:
        """Keep what a chunk says of the answer as a whole; of running totals the last counts."""
        self._count(chunk)
        self._count(as_mapping(chunk.get("x_groq")))
        model = chunk.get("model")
        if isinstance(model, str) and model:
            self._answer.model = storable(model)
        identity = chunk.get("id")
        if isinstance(identity, str) and identity:
            self._answer.id = storable(identity)
        self._seed = self._seed or f"{chunk.get('id')}/{chunk.get('created')}"

    def _count(self, holder: Mapping[str, Any]) -> None:
        self._answer.usage = newest(self._answer.usage, read_usage(holder.get("usage")))

    def _read_choice(self, choice: Mapping[str, Any]) -> Iterator[Delta]:
        delta = choice.get("delta")
        error = choice.get("error") or as_mapping(delta).get("error")
        if error:
            raise ExchangeError(read_embedded_failure(error, secrets=self._secrets))
        self._count(choice)  # Moonshot
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._answer.finish_reason = storable(reason)
        if not isinstance(delta, dict):
            # Some servers send the whole message, or repeat it at the end.
            delta = {} if self._has_content else as_mapping(choice.get("message"))
        yield from self._read_delta(delta)

    def _read_delta(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        text, reasoning = read_content(delta.get("content"))
        refusal = delta.get("refusal")
        yield from self._piece("reasoning", reasoning or read_reasoning(delta), self._reasoning)
        yield from self._piece(
            "text", text or (refusal if isinstance(refusal, str) else ""), self._text
        )
        for fragment in raw_calls(delta):
            yield from self._tool_call_piece(fragment)
        extras = extras_of(delta)
        if extras:
            self._extras.add(as_mapping(storable_json(extras)))

    def _piece(
        self, kind: Literal["text", "reasoning"], raw: str, collected: list[str]
    ) -> Iterator[Delta]:
        piece = self._joiners[kind].feed(raw) if raw else ""
        if piece:
            collected.append(piece)
            yield Delta(kind, piece)

    def _tool_call_piece(self, fragment: Mapping[str, Any]) -> Iterator[Delta]:
        piece = self._tool_calls.feed(fragment, seed=self._seed)
        if piece is not None:
            yield Delta("tool_call", piece.arguments, piece.index, piece.id, piece.name)


def _is_noise(event: ServerSentEvent) -> bool:
    """Whether an event that is no JSON cannot have held a piece of the answer."""
    return event.event != "error" and not event.cut and not _HOLDS_A_PIECE.search(event.data)
