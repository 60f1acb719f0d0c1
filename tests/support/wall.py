"""The failure wall: a model server that misbehaves in the way that a model's name says.

    with Wall() as wall:
        ... call the models "unavailable" and "sound" at wall.base_url ...
        assert len(wall.visits_to("unavailable")) == 1

A raw server, because no framework resets a connection before the headers, cuts a body short
or falls silent inside a stream. It notes each visit and whether the visitor hung up. A model
may be called "sound/2" or "sound/spare" where a test needs several of a kind.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

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


class Wall:
    """The server, as a context manager, on a free port of loopback."""

    def __init__(self, *, pause: float = 0.5) -> None:
        """``pause``: seconds that the slow ones take."""
        self.pause = pause
        self.down = False  # what the models "down", "mute" and "limits-all" go by
        self.visits: list[Visit] = []
        self._started = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._port = 0
        self._lines: set[asyncio.StreamWriter] = set()
        self._guests: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def visits_to(self, model: str) -> list[Visit]:
        return [visit for visit in self.visits if visit.model == model]

    def drop_connections(self) -> None:
        """End all connections, as servers do with those that have been idle for long."""
        self._loop.call_soon_threadsafe(self._drop_lines)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._welcome, "127.0.0.1", 0, limit=2**20)
        )
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._shut(server))
        self._loop.close()

    async def _shut(self, server: asyncio.Server) -> None:
        """End everything that is under way, down to the last socket."""
        await asyncio.sleep(0.01)  # who has just arrived is let in first
        server.close()
        self._drop_lines()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # transports close in the loop's next rounds

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.add(writer)
        self._guests.add(asyncio.ensure_future(self._meet(reader, writer)))

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, request by request, until either side has had enough."""
        ahead: bytes | None = b""
        try:
            while ahead is not None:
                ahead = await self._serve_request(ahead, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _serve_request(
        self, ahead: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Serve one request, of which ``ahead`` is read already.

        Returns what was read of the next one, or None when the connection is over.
        """
        head = (ahead + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        visit = self._note(body)
        behaviour = BEHAVIOURS[visit.model.partition("/")[0]]
        behaving = asyncio.ensure_future(behaviour(Exchange(self, visit, writer)))
        leaving = asyncio.ensure_future(_next_byte(reader))
        await asyncio.wait([behaving, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not behaving.done():
            visit.hung_up.set()
            behaving.cancel()
            return None
        behaving.result()
        leaving.cancel()
        await asyncio.wait([leaving])
        return None if writer.is_closing() else b"" if leaving.cancelled() else leaving.result()

    def _note(self, body: dict[str, Any]) -> Visit:
        model: str = body["model"]
        at = time.monotonic() - self._started
        visit = Visit(model, body, at, len(self.visits_to(model)) + 1)
        self.visits.append(visit)
        return visit

    def _drop_lines(self) -> None:
        for writer in self._lines:
            writer.transport.abort()


class Exchange:
    """One request and the means to answer it, properly or not."""

    def __init__(self, wall: Wall, visit: Visit, writer: asyncio.StreamWriter) -> None:
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


async def _next_byte(reader: asyncio.StreamReader) -> bytes:
    """The visitor's next byte, or nothing when there is no visitor any more."""
    try:
        return await reader.read(1)
    except ConnectionError:
        return b""


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Wall"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


Behaviour = Callable[[Exchange], Awaitable[None]]
BEHAVIOURS: dict[str, Behaviour] = {"sound": Exchange.answer}


def behaviour(behave: Behaviour) -> Behaviour:
    """Let models be called after ``behave``."""
    BEHAVIOURS[behave.__name__.replace("_", "-")] = behave
    return behave


@behaviour
async def limited_once(exchange: Exchange) -> None:
    if exchange.is_first:
        await exchange.fail(429, "Rate limit reached", "rate_limit_exceeded", Retry_After="2")
    else:
        await exchange.answer()


@behaviour
async def limited(exchange: Exchange) -> None:
    await exchange.fail(429, "Rate limit reached", "rate_limit_exceeded")


@behaviour
async def fails_once(exchange: Exchange) -> None:
    if exchange.is_first:
        await exchange.fail(500, "The server had an error")
    else:
        await exchange.answer()


@behaviour
async def unavailable(exchange: Exchange) -> None:
    await exchange.fail(503, "The engine is overloaded", "overloaded")


@behaviour
async def down(exchange: Exchange) -> None:
    await (unavailable(exchange) if exchange.wall.down else exchange.answer())


@behaviour
async def limits_all(exchange: Exchange) -> None:
    """A rate limit that says to everybody when it passes: at the same moment."""
    if exchange.wall.down:
        await exchange.fail(429, "Rate limit reached", "rate_limit_exceeded", Retry_After="1")
    else:
        await exchange.answer()


@behaviour
async def mute(exchange: Exchange) -> None:
    """As ``down``, but nobody answers at all."""
    await (exchange.hold() if exchange.wall.down else exchange.answer())


@behaviour
async def resets(exchange: Exchange) -> None:
    exchange.reset()


@behaviour
async def silent(exchange: Exchange) -> None:
    await exchange.hold()


@behaviour
async def slow(exchange: Exchange) -> None:
    """The headers come at once, the first word after a while."""
    if exchange.is_streamed:
        await exchange.begin()
    await asyncio.sleep(exchange.wall.pause)
    if exchange.is_streamed:
        await exchange.tell()
    else:
        await exchange.answer()


async def two_thirds(exchange: Exchange) -> None:
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.say(*WORDS[:TWO_THIRDS])
    else:
        body = exchange.completion()
        await exchange.send(200, body, cut=len(body) * 2 // 3)


@behaviour
async def cut(exchange: Exchange) -> None:
    """Two thirds of the answer, and the connection ends."""
    await two_thirds(exchange)
    exchange.hang_up()


@behaviour
async def stalls(exchange: Exchange) -> None:
    """Two thirds of the answer, and nothing more on an open line."""
    await two_thirds(exchange)
    await exchange.hold()


@behaviour
async def garbled(exchange: Exchange) -> None:
    """Something that is no JSON gets into an answer that is otherwise whole."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.tell(
            *WORDS[:9],
            b'data: {"id": "wall", "choices": [{"delta": {"content": \n\n',
            *WORDS[9:],
        )
    else:
        await exchange.send(200, exchange.completion()[:-9] + b'"oops')


@behaviour
async def garbled_first(exchange: Exchange) -> None:
    """The same before the first word: nobody has seen anything yet."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.tell(b"data: <html>\n\n", *WORDS)
    else:
        await exchange.send(200, b"<html>it works</html>")


@behaviour
async def loses_a_word(exchange: Exchange) -> None:
    """As ``garbled``, but what is broken was a part of the answer."""
    broken = f'data: {{"choices": [{{"delta": {{"content": " {WORDS[9]}\n\n'
    await exchange.begin()
    await exchange.tell(*WORDS[:9], broken.encode(), *WORDS[10:])


@behaviour
async def no_done(exchange: Exchange) -> None:
    """A whole stream, properly ended, that never says [DONE]."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.tell(*WORDS, done=False)
    else:
        await exchange.answer()


@behaviour
async def no_end(exchange: Exchange) -> None:
    """As ``no_done``, and the connection stays open."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.say(*WORDS)
        await exchange.finish()
        await exchange.hold()
    else:
        await exchange.answer()


@behaviour
async def refuses_key(exchange: Exchange) -> None:
    await exchange.fail(401, "Incorrect API key provided", "invalid_api_key")


@behaviour
async def cut_short(exchange: Exchange) -> None:
    """The token limit was used up by thinking, before the first word."""
    nothing = {"role": "assistant", "content": "", "reasoning_content": "Let me think"}
    await exchange.send(200, exchange.completion(nothing, "length"))


@behaviour
async def small_window(exchange: Exchange) -> None:
    await exchange.fail(400, "The maximum context length is 8 tokens", "context_length_exceeded")


@behaviour
async def filtered(exchange: Exchange) -> None:
    await exchange.fail(400, "Rejected by our safety system", "content_policy_violation")


@behaviour
async def filters_its_answer(exchange: Exchange) -> None:
    """A 200 in which there is nothing but the word that it was filtered."""
    if exchange.is_streamed:
        await exchange.begin()
        await exchange.finish("content_filter")
        await exchange.end()
    else:
        nothing = {"role": "assistant", "content": None}
        await exchange.send(200, exchange.completion(nothing, "content_filter"))


@behaviour
async def declines(exchange: Exchange) -> None:
    """A 200 in which the model itself says no."""
    refusal = {"role": "assistant", "content": None, "refusal": ANSWER}
    await exchange.send(200, exchange.completion(refusal))


@behaviour
async def no_prefill(exchange: Exchange) -> None:
    """Refuses to go on with what an assistant began."""
    if exchange.visit.last_role == "assistant":
        await exchange.fail(400, "This model does not support assistant message prefill")
    else:
        await exchange.answer()
