"""The practice model over HTTP, on loopback, without a key."""

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from broker_project.local.practice_model import MODEL
from broker_project.local.practice_model.completion import BadRequestError, Completion, complete

LARGEST_BODY = 16 * 1024 * 1024


class Server(ThreadingHTTPServer):
    """Serves until told to shut down; ``base_url`` is what a client is given."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    """GET /v1/models and POST /v1/chat/completions."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """List the one model there is."""
        if self.path.rstrip("/") != "/v1/models":
            self._refuse(HTTPStatus.NOT_FOUND, f"no such path: {self.path}")
            return
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "practice"}
        self._send(HTTPStatus.OK, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        """Answer a chat completion."""
        body = self._body()
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._refuse(HTTPStatus.NOT_FOUND, f"no such path: {self.path}")
        elif body is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
        elif body.get("model") != MODEL:
            message = f"the model {body.get('model')!r} does not exist here; this is {MODEL}"
            self._refuse(HTTPStatus.NOT_FOUND, message, "model", "model_not_found")
        else:
            self._complete(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nothing: questions are private, and the caller has a journal."""

    def _complete(self, body: dict[str, Any]) -> None:
        try:
            completion = complete(body)
        except BadRequestError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error), error.param)
            return
        if body.get("stream"):
            options = body.get("stream_options") or {}
            self._stream(completion, include_usage=bool(options.get("include_usage")))
        else:
            self._send(HTTPStatus.OK, completion.whole())

    def _body(self) -> dict[str, Any] | None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY:
            self.close_connection = True
            return None
        try:
            body = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            return None
        return body if isinstance(body, dict) else None

    def _send(self, status: HTTPStatus, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, completion: Completion, *, include_usage: bool) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in completion.chunks(include_usage=include_usage):
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def _refuse(
        self, status: HTTPStatus, message: str, param: str | None = None, code: str | None = None
    ) -> None:
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
        self._send(status, {"error": error})
