"""One request to the failure wall, and the means to answer it, properly or not."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

ANSWER = (
    "Every provider fails in its own way and at its own time so whoever depends on"
    " one should know what a failure looks like before the day on which it comes"
)
WORDS = ANSWER.split()
TWO_THIRDS = len(WORDS) * 2 // 3
USAGE = {"prompt_tokens": 7, "completion_tokens": len(WORDS), "total_tokens": 7 + len(WORDS)}


@dataclass
class Visit:
    """One request, as the wall saw it; ``at`` is in seconds since the wall was put up."""

    model: str
    body: dict[str, Any]
    at: float
    number: int
    hung_up: threading.Event = field(default_factory=threading.Event)

    @property
    def last_role(self) -> str:
        role: str = self.body["messages"][-1]["role"]
        return role


class Mood(Protocol):
    """What behaviours go by beside the request."""

    pause: float
    down: bool


class Exchange:
    """One request and the means to answer it, properly or not."""

    def __init__(self, wall: Mood, visit: Visit, writer: asyncio.StreamWriter) -> None:
        self.wall = wall
        self.visit = visit
        self._writer = writer

    @property
    def is_first(self) -> bool:
        return self.visit.number == 1

    @property
    def is_streamed(self) -> bool:
        return bool(self.visit.body.get("stream"))

    async def answer(self) -> None:
        """Answer as it should be: whole, or as a stream, as the visitor asked."""
        if self.is_streamed:
            await self.begin()
            await self.tell(*WORDS)
        else:
            await self.send(200, self.completion())

    def completion(self, message: dict[str, Any] | None = None, finish: str = "stop") -> bytes:
        said = {"role": "assistant", "content": ANSWER} if message is None else message
        choice = {"index": 0, "message": said, "finish_reason": finish}
        return json.dumps({**self._facts(), "choices": [choice], "usage": USAGE}).encode()

    async def fail(self, status: int, message: str, code: str | None = None, **more: str) -> None:
        error = {"message": message, "type": "error", "code": code, "param": None}
        await self.send(status, json.dumps({"error": error}).encode(), **more)

    async def send(self, status: int, body: bytes, *, cut: int | None = None, **more: str) -> None:
        """Send a whole answer, or only the first ``cut`` bytes of the body it promises."""
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **more}
        await self._write(_head(status, headers) + body[:cut])

    async def begin(self) -> None:
        """Send the headers of a stream and its first event, which holds no content."""
        headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        await self._write(_head(200, headers))
        await self.chunk({"role": "assistant", "content": ""})

    async def tell(self, *pieces: str | bytes, done: bool = True) -> None:
        """Stream ``pieces``, words or raw events, from the first word to the end."""
        first = True
        for piece in pieces:
            if isinstance(piece, str):
                await self.chunk({"content": piece if first else f" {piece}"})
                first = False
            else:
                await asyncio.sleep(0.02)  # what came before has arrived by then
                await self.event(piece)
        await self.finish()
        if done:
            await self.event(b"data: [DONE]\n\n")
        await self.end()

    async def say(self, *words: str) -> None:
        """Stream the beginning of an answer, and give it time to arrive."""
        for position, word in enumerate(words):
            await self.chunk({"content": f" {word}" if position else word})
        await asyncio.sleep(0.02)

    async def finish(self, reason: str = "stop") -> None:
        await self.chunk({}, reason)
        usage = json.dumps({**self._facts(), "choices": [], "usage": USAGE})
        await self.event(f"data: {usage}\n\n".encode())

    async def chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        await self.event(f"data: {json.dumps({**self._facts(), 'choices': [choice]})}\n\n".encode())

    async def event(self, data: bytes) -> None:
        await self._write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self._write(b"0\r\n\r\n")

    async def hold(self) -> None:
        """Keep the line open and say nothing until the visitor hangs up."""
        await asyncio.sleep(60)

    def hang_up(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        """Drop the connection so that the visitor sees a reset, not an end."""
        line: socket.socket = self._writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def _facts(self) -> dict[str, Any]:
        model = self.visit.model
        return {"id": f"wall-{self.visit.number}", "created": 1767225600, "model": model}


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Wall"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
