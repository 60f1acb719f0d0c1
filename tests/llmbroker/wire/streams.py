"""Streams and answers to feed to the wire, and the shortest way to read them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llmbroker.models import Completion
from llmbroker.wire.completion import parse_completion
from llmbroker.wire.deltas import Delta, StreamAssembler
from llmbroker.wire.sse import EventParser

ORIGIN = "generic llm.example.test"
DONE = b"data: [DONE]\n\n"


def recorded(name: str) -> bytes:
    """Real traffic of a llama.cpp server with a small Qwen model."""
    return Path(__file__).with_name("recorded").joinpath(name).read_bytes()


def chunk(delta: dict[str, Any] | None = None, **fields: Any) -> bytes:
    """One event with one choice; ``finish`` ends it, other fields stand beside the choices."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": fields.pop("finish", None)}
    return event({"id": "chatcmpl-1", "model": "m-1", "choices": [choice], **fields})


def event(data: object) -> bytes:
    """One event that holds ``data`` as JSON."""
    return b"data: %b\n\n" % json.dumps(data).encode()


def tool_fragment(arguments: object = None, name: str | None = None, **fields: Any) -> bytes:
    """One event with one fragment of a tool call."""
    return chunk({"tool_calls": [fragment(arguments, name, **fields)]})


def fragment(arguments: object = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    """One fragment of a tool call; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    return {
        **fields,
        "function": {key: value for key, value in function.items() if value is not None},
    }


def read(pieces: Iterable[bytes], **options: Any) -> tuple[list[Delta], Completion]:
    """The deltas and the completion of a stream whose network chunks are ``pieces``."""
    parser, assembler = EventParser(), StreamAssembler(ORIGIN, **options)
    deltas: list[Delta] = []
    for piece in pieces:
        for one in parser.feed(piece):
            deltas += assembler.feed(one)
    for one in parser.flush():
        deltas += assembler.feed(one)
    return deltas, assembler.finish()


def completion(*pieces: bytes, **options: Any) -> Completion:
    """The completion of a stream."""
    return read(pieces, **options)[1]


def answer(message: dict[str, Any], **fields: Any) -> bytes:
    """The body of a whole answer; ``finish`` is its finish_reason."""
    choice = {"index": 0, "message": message, "finish_reason": fields.pop("finish", "stop")}
    return json.dumps({"id": "chatcmpl-1", "model": "m-1", "choices": [choice], **fields}).encode()


def parse(message: dict[str, Any], **fields: Any) -> Completion:
    """The completion of a whole answer with ``message``."""
    options = {key: fields.pop(key) for key in ("origin", "max_tokens") if key in fields}
    return parse_completion(answer(message, **fields), **{"origin": ORIGIN, **options})


def tool_call(arguments: object = "{}", name: str = "get_weather", **fields: Any) -> dict[str, Any]:
    """A tool call as it stands in a whole answer."""
    return {"type": "function", **fields, "function": {"name": name, "arguments": arguments}}


def called(completion: Completion) -> list[tuple[str, str, str]]:
    """The tool calls as (id, name, arguments)."""
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in completion.tool_calls or []
    ]
