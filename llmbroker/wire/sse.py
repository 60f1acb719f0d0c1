"""Server-sent events by the WHATWG specification, over bytes.

Bytes, because a network chunk may end inside a character, and because text splitters take
U+2028 for a line end, which the specification does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmbroker.wire.failure import ExchangeError, Failure, FailureKind

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_EVENT_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event. ``cut`` says that the stream ended before the blank line that closes it."""

    data: bytes
    event: str = "message"
    id: str = ""
    cut: bool = False


class EventParser:
    """Cuts a byte stream into events, wherever the network cut it."""

    def __init__(self) -> None:
        self._started = False
        self._skip_line_feed = False
        self._line: list[bytes] = []  # the pieces of a line whose end has not come yet
        self._data: list[bytes] = []
        self._event = ""
        self._id = ""
        self._size = 0

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that ``data`` completes.

        Raises ExchangeError for an event of more than 32 MiB.
        """
        if self._skip_line_feed and data:
            data = data.removeprefix(b"\n")
            self._skip_line_feed = False
        if not data:
            return []
        self._skip_line_feed = data.endswith(b"\r")
        first, *others = _LINE_END.split(data)
        self._line.append(first)
        self._count(len(first))
        events: list[ServerSentEvent] = []
        for following in others:
            self._take(self._whole_line(), events)
            self._line.append(following)
            self._count(len(following))
        return events

    def flush(self) -> list[ServerSentEvent]:
        """The event that the end of the stream left open, marked as cut.

        The specification drops it; providers that forget the last blank line are common.
        """
        events: list[ServerSentEvent] = []
        self._take(self._whole_line(), events)
        if self._data:
            events.append(self._dispatched(cut=True))
        return events

    def _take(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if line:
            self._read_field(line)
        elif self._data:
            events.append(self._dispatched(cut=False))
        else:
            self._event, self._size = "", 0

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\x00" not in value:
            self._id = value.decode("utf-8", "replace")

    def _dispatched(self, *, cut: bool) -> ServerSentEvent:
        event = ServerSentEvent(b"\n".join(self._data), self._event or "message", self._id, cut)
        self._data, self._event, self._size = [], "", 0
        return event

    def _whole_line(self) -> bytes:
        line = b"".join(self._line)
        self._line = []
        if not self._started:
            self._started = True
            line = line.removeprefix(_BYTE_ORDER_MARK)
        return line

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > _MAX_EVENT_BYTES:
            failure = Failure(
                FailureKind.INVALID_RESPONSE, detail="one event of the stream is over 32 MiB"
            )
            raise ExchangeError(failure)
