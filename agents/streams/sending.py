"""A run's events as a stream of bytes: what is stored, then what happens, until the run is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import UUID

from agents.streams.frames import HELLO, KEEP_ALIVE, Frame
from agents.streams.hub import Listener, current_hub
from agents.streams.reading import Page, page_after
from tenants.caller import Caller
from tenants.database import in_thread

SILENCE = 15.0
"""Seconds after which a comment says that the stream is alive."""

SESSION_SECONDS = 300.0
"""A stream let in by a browser's session ends then: the browser comes back and is checked."""


async def event_stream(caller: Caller, run_id: UUID, after: int) -> AsyncGenerator[bytes, None]:
    """The events of a run of the caller's scope that follow number ``after``.

    Between two events it holds no thread and no connection. It ends after the last event of the
    run, when the run is deleted, and when the caller may no longer read it.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + SESSION_SECONDS if caller.token is None else float("inf")
    hub = await current_hub()
    yield HELLO
    async with (
        hub.listening(run_id, caller) as listener,
        aclosing(_frames(listener, after)) as all_,
    ):
        async for frame in all_:
            yield KEEP_ALIVE if frame is None else frame.text
            if loop.time() > ends_at:
                return


async def _frames(listener: Listener, after: int) -> AsyncGenerator[Frame | None, None]:
    """Each event once, in order; None after a time of silence."""
    listener.position = after
    listener.tell()  # what is stored already
    while not listener.refused:
        told = await listener.news(SILENCE)
        if told is None:
            yield None
            continue
        live = _following(listener.position, told)
        page = Page(live) if live is not None else await _stored(listener)
        for frame in page.frames:
            listener.position = frame.number or listener.position
            yield frame
            if frame.is_last:
                return
        if page.is_end:
            return
        if page.has_more:
            listener.tell()


def _following(position: int, told: list[Frame]) -> list[Frame] | None:
    """What of ``told`` is new; None where something is missing in it, so that only the table
    tells all."""
    found = []
    for frame in told:
        if frame.number is None:
            found.append(frame)
        elif frame.number == position + 1 and frame.is_whole:
            found.append(frame)
            position += 1
        elif frame.number > position:
            return None
    return found if told else None


async def _stored(listener: Listener) -> Page:
    return await in_thread(page_after, listener.caller, listener.run_id, listener.position)
