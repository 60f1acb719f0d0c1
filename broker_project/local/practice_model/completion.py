"""A chat completion in OpenAI's shape, whole or as stream chunks."""

import hashlib
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from broker_project.local.practice_model import MODEL
from broker_project.local.practice_model.conversation import ToolCall, respond

BYTES_PER_TOKEN = 4


class BadRequestError(Exception):
    """The request is malformed; ``param`` names the field."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True)
class Completion:
    """One reply with its id and what it counts as usage."""

    id: str
    created: int
    reply: str | ToolCall
    usage: dict[str, int]

    @property
    def finish_reason(self) -> str:
        """Why the model stopped."""
        return "stop" if isinstance(self.reply, str) else "tool_calls"

    def whole(self) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        choice = {"index": 0, "message": self._message(), "finish_reason": self.finish_reason}
        return {**self._frame("chat.completion", [choice]), "usage": self.usage}

    def chunks(self, *, include_usage: bool) -> Iterator[dict[str, Any]]:
        """The same as a stream: words of the answer, or the tool call's arguments in pieces."""
        yield self._chunk({"role": "assistant", "content": None})
        for delta in self._deltas():
            yield self._chunk(delta)
        yield self._chunk({}, self.finish_reason)
        if include_usage:
            yield {**self._frame("chat.completion.chunk", []), "usage": self.usage}

    def _message(self) -> dict[str, Any]:
        if isinstance(self.reply, str):
            return {"role": "assistant", "content": self.reply}
        return {"role": "assistant", "content": None, "tool_calls": [_wire(self.reply)]}

    def _deltas(self) -> Iterator[dict[str, Any]]:
        if isinstance(self.reply, str):
            for piece in _pieces(self.reply):
                yield {"content": piece}
            return
        start = _wire(ToolCall(self.reply.id, self.reply.name, ""))
        yield {"tool_calls": [{"index": 0, **start}]}
        for piece in _pieces(self.reply.arguments):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._frame("chat.completion.chunk", [choice])

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        frame = {"id": self.id, "object": kind, "created": self.created, "model": MODEL}
        return {**frame, "choices": choices}


def complete(body: Mapping[str, Any]) -> Completion:
    """Answer a request of POST /v1/chat/completions."""
    messages, tools = body.get("messages"), body.get("tools") or []
    if not isinstance(messages, list) or not messages or not _objects(messages):
        raise BadRequestError("'messages' must be a list of objects, with at least one", "messages")
    if not isinstance(tools, list) or not _objects(tools):
        raise BadRequestError("'tools' must be a list of objects", "tools")
    reply = respond(messages, tools, body.get("tool_choice", "auto"))
    asked = json.dumps([messages, tools], ensure_ascii=False)
    said = reply if isinstance(reply, str) else f"{reply.name} {reply.arguments}"
    digest = hashlib.sha256(asked.encode(errors="replace")).hexdigest()
    return Completion(f"chatcmpl-{digest[:24]}", int(time.time()), reply, _usage(asked, said))


def _usage(asked: str, said: str) -> dict[str, int]:
    prompt, answer = _tokens(asked), _tokens(said)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
    }


def _tokens(text: str) -> int:
    """Four bytes to the token: about right for English, and the same every time."""
    return math.ceil(len(text.encode(errors="replace")) / BYTES_PER_TOKEN)


def _wire(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _pieces(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def _objects(values: list[object]) -> bool:
    return all(isinstance(value, dict) for value in values)
