"""A tool's own server on loopback: what arrived, and the answer that a test wants.

with tool_server() as server:
    server.answer(200, {"charged": True})
    ...
    assert server.requests[0].json["arguments"] == {"amount": 5}
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class ToolRequest:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def is_signed_with(self, secret: str) -> bool:
        """As the Standard Webhooks specification tells receivers to check it."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode()
        digest = hmac.new(key, signed + self.body, hashlib.sha256).digest()
        fresh = abs(time.time() - int(self.headers["webhook-timestamp"])) < 300
        expected = "v1," + base64.b64encode(digest).decode()
        signatures = self.headers["webhook-signature"].split(" ")
        return fresh and any(hmac.compare_digest(expected, each) for each in signatures)


class ToolServer:
    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/tool"
        self.requests: list[ToolRequest] = []
        self.answer(200, {"ok": True})

    def answer(self, status: int, body: Any, *, delay: float = 0.0, **headers: str) -> None:
        """Answer so from now on; a body that is not bytes goes out as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = {} if isinstance(body, bytes) else {"Content-Type": "application/json"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._answer = status, raw, {**kind, **named}, delay

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        status, body, headers, delay = self._answer
        time.sleep(delay)
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


class _Quiet(ThreadingHTTPServer):
    request_queue_size = 128  # see model_server
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """Clients that leave early are what some tests are about."""


@contextmanager
def tool_server() -> Iterator[ToolServer]:
    """Run one on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.requests.append(ToolRequest(self.path, headers, body))
            server.send(self)

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.requests.append(ToolRequest(self.path, headers, b""))
            server.send(self)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    http = _Quiet(("127.0.0.1", 0), Handler)
    server = ToolServer(http.server_address[1])
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)
