"""A real MCP server in a process of its own, over streamable HTTP on loopback.

Run as a program it serves; `mcp_server()` starts it, waits until it answers, and ends it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class RunningServer:
    """Where it is, and what it wrote down of each request."""

    url: str
    port: int
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def calls(self) -> list[dict[str, Any]]:
        return [each for each in self.requests if each["method"] == "tools/call"]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(10)


@contextmanager
def mcp_server(
    folder: Path, *, token: str = "", port: int = 0, stateless: bool = False
) -> Iterator[RunningServer]:
    """Start one; with a token it answers 401 to requests without it."""
    port = port or _free_port()
    log = folder / "mcp-requests.jsonl"
    log.touch()
    process = subprocess.Popen(
        [sys.executable, __file__, str(port), str(log), token, str(int(stateless))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = RunningServer(f"http://127.0.0.1:{port}/mcp", port, log, process)
    try:
        _wait_for(port, process)
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the MCP server did not start")


def _serve(port: int, log: Path, token: str, *, stateless: bool) -> None:
    import uvicorn

    app = _library(token).streamable_http_app(stateless_http=stateless)
    uvicorn.run(_guarded(app, log, token), port=port, log_level="warning")


def _library(token: str) -> Any:
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    server = MCPServer("library")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def find_book(title: str, limit: int = 3) -> str:
        """Find a book. 📚"""
        return f"{limit} × «{title}»"

    @server.tool(name="lend.book", annotations=ToolAnnotations(idempotent_hint=True))
    def lend_book(title: str) -> dict[str, str]:
        """Lend a book."""
        return {"lent": title}

    @server.tool()
    def burn_book(title: str) -> str:
        """Burn a book."""
        raise ToolError(f"nobody burns {title}")

    @server.tool()
    async def read_book(title: str) -> str:
        """Read a book slowly."""
        await anyio.sleep(30)
        return title

    @server.tool()
    def say_token() -> str:
        """Give away the secret."""
        return f"you sent Bearer {token}, that is {token}"

    return server


def _guarded(app: Any, log: Path, token: str) -> Any:
    """`app` behind its token, with a line in `log` for each request."""

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if token and headers.get("authorization") != f"Bearer {token}":
            body = f"bad token {headers.get('authorization')}".encode()
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": body})
            return
        chunks: list[bytes] = []

        async def heard() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                chunks.append(message.get("body", b""))
                if not message.get("more_body"):
                    _note(log, scope["method"], headers, b"".join(chunks))
            return message

        await app(scope, heard, send)

    return guarded


def _note(log: Path, verb: str, headers: dict[str, str], body: bytes) -> None:
    message = json.loads(body) if body else {}
    entry = {"verb": verb, "headers": headers, "method": message.get("method"), "body": message}
    with log.open("a") as file:
        file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], stateless=sys.argv[4] == "1")
