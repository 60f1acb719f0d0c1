"""One connection, which carries one exchange at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from llmbroker.http1.response import Response
from llmbroker.http1.target import Origin


class Connection(asyncio.Protocol):
    """``idle_since`` is by the loop's clock; ``on_idle`` is told when another request may go."""

    def __init__(
        self,
        origin: Origin,
        loop: asyncio.AbstractEventLoop,
        on_idle: Callable[[Connection], None],
    ) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.closed: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._on_idle = on_idle
        self._transport: asyncio.Transport
        self._response: Response | None = None

    @property
    def is_open(self) -> bool:
        """Whether a request may still go."""
        return not self._transport.is_closing()

    def ask(self, request: bytes, ends_at: float) -> Response:
        """Send ``request``; the answer must be whole at ``ends_at``."""
        self._response = response = Response(self, self._loop, ends_at)
        self._transport.write(request)
        return response

    def abort(self) -> None:
        """End it at once, whatever is under way."""
        self._transport.abort()

    def pause(self) -> None:
        """See Socket."""
        if self.is_open:
            self._transport.pause_reading()

    def resume(self) -> None:
        """See Socket."""
        if self.is_open:
            self._transport.resume_reading()

    def settle(self, *, keep: bool) -> None:
        """See Socket. An answer that came before its request was sent whole leaves no room."""
        self._response = None
        if keep and self.is_open and not self._transport.get_write_buffer_size():
            self.idle_since = self._loop.time()
            self._on_idle(self)
        else:
            self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._response is None:
            self.abort()  # nobody has asked
        else:
            self._response.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._response is not None:
            reason = getattr(error, "strerror", None) if error else None
            self._response.cut(reason or "the connection was closed")
        if not self.closed.done():
            self.closed.set_result(None)
