"""An OpenAI-compatible model server on loopback, whose replies a test writes down beforehand.

    with ModelServer() as server:
        server.script(ask(("today", {"timezone": "UTC"})), say("It is Monday."))
        ... call server.base_url ...
        assert server.requests[0].body["messages"][-1]["content"] == "What day is it?"

Replies are used up in order, whatever the request; with `answer_with` a function decides. A
request beyond the script gets a 500 that says so.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Arguments = Mapping[str, object] | str
"""Arguments of a tool call: an object, or the very text that the model sends."""


@dataclass(frozen=True)
class Request:
    """What arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def authorization(self) -> str | None:
        return self.headers.get("authorization")

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages


@dataclass(frozen=True)
class Reply:
    """What to send back, and when: after `delay` seconds and once `gate` is set.

    With `pieces` these are the body, `pause` seconds apart; the `gate` is then before the last.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    gate: threading.Event | None = None
    pieces: tuple[bytes, ...] = ()
    pause: float = 0.0

    def after(self, seconds: float) -> Reply:
        return replace(self, delay=seconds)

    def behind(self, gate: threading.Event) -> Reply:
        return replace(self, gate=gate)


def say(text: str | None, *, usage: tuple[int, int] | None = (10, 5), **message: object) -> Reply:
    """A final answer; `usage` is (prompt, completion) tokens, further fields join the message."""
    return completion({"role": "assistant", "content": text, **message}, usage=usage)


def ask(
    *calls: tuple[str, Arguments],
    ids: tuple[str, ...] = (),
    text: str | None = None,
    usage: tuple[int, int] | None = (10, 5),
) -> Reply:
    """A request for tools: pairs of name and arguments; ids are `call_1`, … unless given."""
    tool_calls = [
        {
            "id": ids[index] if ids else f"call_{index + 1}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given
                if isinstance(given, str)
                else json.dumps(given, ensure_ascii=False),
            },
        }
        for index, (name, given) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": tool_calls}
    return completion(message, usage=usage, finish_reason="tool_calls")


def completion(
    message: Mapping[str, object],
    *,
    usage: tuple[int, int] | None = (10, 5),
    finish_reason: str = "stop",
) -> Reply:
    """A whole chat completion around `message`."""
    body: dict[str, object] = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "test-model-answered",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }
    if usage is not None:
        prompt, generated = usage
        body["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
        }
    # Escaped, so that a lone surrogate can travel as JSON lets it.
    return Reply(body=json.dumps(body).encode())


def tell(
    *texts: str,
    kind: str = "content",
    usage: tuple[int, int] = (10, 5),
    cut: bool = False,
    pause: float = 0.0,
) -> Reply:
    """An answer that is streamed in these pieces; one that is `cut` breaks off after them."""
    pieces = [_event({"choices": [{"index": 0, "delta": {kind: text}}]}) for text in texts]
    if not cut:
        prompt, generated = usage
        total = prompt + generated
        counted = {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": total}
        pieces += [
            _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            _event({"choices": [], "usage": counted}) + b"data: [DONE]\n\n",
        ]
    headers = {"Content-Type": "text/event-stream"}
    return Reply(headers=headers, pieces=tuple(pieces), pause=pause)


def _event(chunk: Mapping[str, object]) -> bytes:
    return b"data: %b\n\n" % json.dumps(chunk).encode()


def fail(status: int, message: str = "it broke", **headers: str) -> Reply:
    """An error in OpenAI's shape; `Retry_After="2"` gives a header."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "param": None, "code": None}
    return Reply(
        status=status,
        body=json.dumps({"error": error}).encode(),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


Answer = Callable[[Request], Reply]


def by_turn(*replies: Reply) -> Answer:
    """Answers by how far the conversation has come, so that a repeated request gets the same."""

    def answer(request: Request) -> Reply:
        turn = sum(message["role"] == "assistant" for message in request.messages)
        return replies[turn] if turn < len(replies) else fail(500, "no reply for this turn")

    return answer


class ModelServer:
    """The server, as a context manager; it listens on a free port of loopback."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.arrived = threading.Condition()
        self._replies: deque[Reply] = deque()
        self._answer: Answer | None = None
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.model = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def script(self, *replies: Reply) -> None:
        """Add replies to those still unused."""
        self._replies.extend(replies)

    def answer_with(self, answer: Answer) -> None:
        """Let a function answer every request, in the server's thread."""
        self._answer = answer

    def wait_for_requests(self, count: int, *, timeout: float = 10.0) -> None:
        """Wait until `count` requests have arrived in all."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} of {count} requests within {timeout} s")

    def reply_to(self, request: Request) -> Reply:
        """Note the request, and choose its reply."""
        with self.arrived:
            self.requests.append(request)
            reply = self._replies.popleft() if self._answer is None and self._replies else None
            self.arrived.notify_all()
        if self._answer is not None:
            return self._answer(request)
        return reply or fail(500, "the test's script has no reply left")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # of five, many callers at once wait whole seconds for their turn
    daemon_threads = True
    block_on_close = False  # a pooled connection of a client may outlive the test
    model: ModelServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(self.rfile.read(length)))
        reply = self.server.model.reply_to(request)
        if reply.gate is not None and not reply.pieces:
            reply.gate.wait(60)
        if reply.delay:
            time.sleep(reply.delay)
        try:
            self._send(reply)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has gone, as some tests want it to

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        length = len(reply.body) + sum(map(len, reply.pieces))
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(reply.body)
        for number, piece in enumerate(reply.pieces, start=1):
            if reply.gate is not None and number == len(reply.pieces):
                reply.gate.wait(60)
            self.wfile.write(piece)
            time.sleep(reply.pause)

    def log_message(self, *args: object) -> None:
        """Say nothing: a test's output is its own."""
