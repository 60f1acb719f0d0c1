"""Answers that go on for long, without a thread of Django's for each.

While Django sends an answer it keeps a thread for its request. A view may hand its stream over
instead: Django sends the head and is done, and the event loop alone sends the pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from django.http import HttpRequest

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]
Pieces = AsyncGenerator[bytes, None]

SEND_TIMEOUT = 30.0
"""Seconds in which a client must make room for the next piece, or is cut off."""

_KEY = "broker.handover"


class _Place:
    """Where a view leaves its stream."""

    pieces: Pieces | None = None


def hand_over(request: HttpRequest, pieces: Pieces) -> bool:
    """Have ``pieces`` sent after the view's empty answer. False where the server is not ours."""
    place: _Place | None = getattr(request, "scope", {}).get(_KEY)
    if place is None:
        return False
    place.pieces = pieces
    return True


class StreamHandover:
    """The ASGI application around Django that sends what views hand over."""

    def __init__(self, django: Application) -> None:
        self._django = django

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        place = _Place()
        succeeded = False

        async def send_head(message: Message) -> None:
            nonlocal succeeded
            if message["type"] == "http.response.start":
                succeeded = message["status"] == 200
            elif succeeded and place.pieces is not None:
                message = {**message, "more_body": True}
            await send(message)

        await self._django({**scope, _KEY: place}, receive, send_head)
        if place.pieces is None:
            return
        async with aclosing(place.pieces) as pieces:
            if succeeded:
                await _send_all(pieces, receive, send)


async def _send_all(pieces: Pieces, receive: Receive, send: Send) -> None:
    """Until the pieces end or the client leaves."""
    tasks = [
        asyncio.ensure_future(_sent(pieces, send)),
        asyncio.ensure_future(_client_left(receive)),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _sent(pieces: Pieces, send: Send) -> None:
    async for piece in pieces:
        async with asyncio.timeout(SEND_TIMEOUT):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
