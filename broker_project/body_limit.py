"""No more of a body is read than the settings allow, whether or not its length was announced.

Django looks at the announced length only, and only once it has the whole body on its disk.
"""

from __future__ import annotations

from typing import Any

from tenants.handover import Application, Message, Receive, Send

_NOTHING_MORE = {"type": "http.request", "body": b"", "more_body": False}


class BodyLimit:
    """The ASGI application around ``inner``, for which a body too long is one of that length and
    without content: it refuses it as it refuses others, in its own words."""

    def __init__(self, inner: Application, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        body = _Body(scope, receive, self._most)

        async def closing(message: Message) -> None:
            if body.is_too_long and message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        await self._inner(body.scope, body.receive, closing)


class _Body:
    """One request's body, up to the limit."""

    def __init__(self, scope: dict[str, Any], receive: Receive, most: int) -> None:
        self.scope = {**scope, "headers": list(scope["headers"])}
        self.is_too_long = _announced(scope) > most
        self._receive = receive
        self._most = most
        self._read = 0
        self._ended = False

    async def receive(self) -> Message:
        """The next message, and none of the body beyond the limit."""
        if self._ended:
            return await self._left()
        if not self.is_too_long:
            message = await self._receive()
            self._read += len(message.get("body", b""))
            if self._read <= self._most:
                return message
            self.is_too_long = True
            self.scope["headers"].append((b"content-length", str(self._read).encode()))
        self._ended = True
        return _NOTHING_MORE

    async def _left(self) -> Message:
        """The end of the connection; what still comes of the body is dropped."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return message


def _announced(scope: dict[str, Any]) -> int:
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return max((int(value[:20]) for value in lengths if value.isdigit()), default=0)
