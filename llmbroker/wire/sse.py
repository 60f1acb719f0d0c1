"""Server-sent events by the WHATWG specification, over bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One dispatched event. ``data`` is never empty."""

    data: bytes
    event: str = "message"
    id: str | None = None


class EventParser:
    """Cuts a byte stream into events, wherever the network cut it."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that ``data`` completes."""
        self._buffer += data.replace(b"\r\n", b"\n")
        *blocks, self._buffer = self._buffer.split(b"\n\n")
        return [
            ServerSentEvent(block[5:].strip()) for block in blocks if block.startswith(b"data:")
        ]

    def flush(self) -> list[ServerSentEvent]:
        """The event left when the stream ended without its blank line."""
        return self.feed(b"\n\n")
