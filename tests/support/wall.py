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
import threading
import time
from types import TracebackType
from typing import Any, Self

from tests.support.wall_behaviours import BEHAVIOURS
from tests.support.wall_exchange import ANSWER, TWO_THIRDS, USAGE, WORDS, Exchange, Visit

__all__ = ["ANSWER", "TWO_THIRDS", "USAGE", "WORDS", "Visit", "Wall"]


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


async def _next_byte(reader: asyncio.StreamReader) -> bytes:
    """The visitor's next byte, or nothing when there is no visitor any more."""
    try:
        return await reader.read(1)
    except ConnectionError:
        return b""
