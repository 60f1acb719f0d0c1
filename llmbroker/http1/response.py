"""One answer: fed by its connection as bytes arrive, read by whoever asked."""

from __future__ import annotations

import asyncio
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from llmbroker.http1.decoding import Decoder, decoder_of
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind

MAX_ANSWER_BYTES = 32 * 1024 * 1024

_MAX_HEAD_BYTES = 128 * 1024
_HIGH_WATER = 1024 * 1024
"""With as much unread, the connection is not read on."""

_NO_BODY = frozenset({204, 304})


class Socket(Protocol):
    """What an answer needs of the connection that it comes over."""

    def pause(self) -> None:
        """Stop reading."""
        ...

    def resume(self) -> None:
        """Read on."""
        ...

    def settle(self, *, keep: bool) -> None:
        """The answer has ended; ``keep`` says that another request may follow."""
        ...


class Response:
    """``status`` and ``headers`` (names in lower case) are there once ``settled`` has returned."""

    def __init__(self, socket: Socket, loop: asyncio.AbstractEventLoop, ends_at: float) -> None:
        """``ends_at`` is when, by the loop's clock, all of it must have arrived."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.failure: Failure | None = None
        self._socket = socket
        self._loop = loop
        self._parser: HttpResponseParser | None = _new_parser(self)
        self._timer = loop.call_at(ends_at, self._expire)
        self._waiter: asyncio.Future[None] | None = None
        self._decoder: Decoder | None = None  # from the head's end on
        self._pieces: list[bytes] = []
        self._unread = 0
        self._size = 0
        self._head_size = 0
        self._is_over = False
        self._is_complete = False
        self._may_keep = False
        self._is_paused = False

    @property
    def died_before_answering(self) -> bool:
        """Whether the connection ended and not one byte of an answer had come."""
        died = self.failure is not None and self.failure.kind is FailureKind.DISCONNECTED
        return died and not self._head_size

    async def settled(self) -> None:
        """Wait until the head is there, or ``failure``. Being cancelled ends the connection."""
        while self._decoder is None and not self._is_over:
            await self._news()

    async def piece(self) -> bytes:
        """What has arrived of the body since, empty at its end. Raises ExchangeError."""
        while not self._pieces and not self._is_over:
            await self._news()
        if self.failure is not None and not self._pieces:
            raise ExchangeError(self.failure)
        pieces, self._pieces, self._unread = self._pieces, [], 0
        if self._is_paused:
            self._is_paused = False
            self._socket.resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def body(self) -> bytes:
        """All of the body. Raises ExchangeError."""
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Nobody reads on: ends the connection unless the answer is over."""
        self.fail(Failure(FailureKind.DISCONNECTED, detail="closed by its reader"))

    def feed(self, data: bytes) -> None:
        """Bytes have arrived."""
        if self._parser is None:
            return
        if self._decoder is None:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.fail(Failure(FailureKind.DISCONNECTED, detail="the answer is no HTTP"))
        if self._is_complete:
            self._end(keep=self._may_keep)
        elif self._decoder is None and self._head_size > _MAX_HEAD_BYTES:
            self.fail(Failure(FailureKind.INVALID_RESPONSE, detail="the head is too large"))
        if self._is_over:
            self._parser = None  # which refers to this object
        self._wake()

    def cut(self, words: str) -> None:
        """The connection has ended, which is the end of some bodies."""
        if self._decoder is not None and self._ends_with_connection():
            self._end(keep=False)
        else:
            self.fail(Failure(FailureKind.DISCONNECTED, detail=words))

    def fail(self, failure: Failure) -> None:
        """Nothing more comes, because of ``failure``."""
        if not self._is_over:
            self.failure = failure
            self._end(keep=False)

    def on_message_begin(self) -> None:
        """The parser's."""
        if self._is_complete:  # another answer follows, for which nobody has asked
            self._may_keep = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser's."""
        if not self._is_complete:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The parser's."""
        if self._is_complete:
            return
        self.status = self._parser.get_status_code() if self._parser else 0
        if self.status < 200:  # only says that the answer will come
            self.headers.clear()
            return
        try:
            self._decoder = decoder_of(self.headers.get("content-encoding", ""))
        except ValueError as error:
            self.fail(Failure(FailureKind.DISCONNECTED, detail=str(error)))

    def on_body(self, data: bytes) -> None:
        """The parser's."""
        if self._decoder is None or self._is_over or self._is_complete:
            return
        try:
            data = self._decoder.feed(data, MAX_ANSWER_BYTES)
        except ValueError as error:
            self.fail(Failure(FailureKind.DISCONNECTED, detail=str(error)))
            return
        self._size += len(data)
        if self._size > MAX_ANSWER_BYTES:
            detail = f"the answer is larger than {MAX_ANSWER_BYTES // 2**20} MB"
            self.fail(Failure(FailureKind.INVALID_RESPONSE, detail=detail))
            return
        if data:  # a packed body begins with what unpacks to nothing
            self._pieces.append(data)
            self._unread += len(data)
        if self._unread > _HIGH_WATER and not self._is_paused:
            self._is_paused = True
            self._socket.pause()

    def on_message_complete(self) -> None:
        """The parser's."""
        if self.status >= 200 and self._parser is not None and not self._is_complete:
            self._is_complete, self._may_keep = True, self._parser.should_keep_alive()

    def _ends_with_connection(self) -> bool:
        chunked = "chunked" in self.headers.get("transfer-encoding", "")
        return not (chunked or "content-length" in self.headers or self.status in _NO_BODY)

    def _expire(self) -> None:
        self.fail(Failure(FailureKind.TIMEOUT))

    def _end(self, *, keep: bool) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._timer.cancel()
        self._socket.settle(keep=keep and not self._is_paused)
        self._wake()

    async def _news(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _new_parser(response: Response) -> HttpResponseParser:
    """As browsers and aiohttp read answers: a bare line feed ends a line all the same."""
    parser = HttpResponseParser(response)
    parser.set_dangerous_leniencies(
        lenient_headers=True,
        lenient_optional_cr_before_lf=True,
        lenient_spaces_after_chunk_size=True,
    )
    return parser
