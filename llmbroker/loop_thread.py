"""One event loop in a thread of its own, for blocking callers of async code."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Closing = Callable[[], Coroutine[Any, Any, None]]


class LoopThread:
    """Started on first use, so that a process which forks before that has nothing to inherit.

    Whoever needs the loop holds this object; when nobody does any more, or the program ends,
    ``closing`` runs on the loop and the thread ends.
    """

    def __init__(self, closing: Closing | None = None) -> None:
        closing = closing or _nothing
        self._served = _Served()
        self._closing = closing
        weakref.finalize(self, self._served.end, closing)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run ``work`` on the loop and wait for its result.

        Raises RuntimeError when called from the loop itself, which would wait for ever.
        """
        loop = self._served.start()
        if self._served.is_current():
            work.close()
            raise RuntimeError("a Broker was called on its own event loop: use AsyncBroker there")
        return _Errand(work, loop).result()

    def close(self) -> None:
        """Run ``closing`` and end the thread. A later ``run`` starts a new one."""
        self._served.end(self._closing)


class _Errand(Generic[Result]):
    """One coroutine, run by the loop for a thread that waits.

    ``asyncio.run_coroutine_threadsafe`` does the same by way of a second future, chained to the
    task, which for a short call costs a tenth of all.
    """

    def __init__(self, work: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop
        self._task: asyncio.Task[Result]
        self._done = threading.Lock()
        self._done.acquire()
        loop.call_soon_threadsafe(self._start)  # in the context of this thread

    def result(self) -> Result:
        """Wait. Whoever is interrupted meanwhile takes the work back."""
        try:
            self._done.acquire()
        except BaseException:
            self._loop.call_soon_threadsafe(self._cancel)
            raise
        if self._task.cancelled():
            raise CancelledError
        return self._task.result()

    def _start(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(lambda _: self._done.release())

    def _cancel(self) -> None:
        self._task.cancel()


class _Served:
    """The loop and its thread, while there are any in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def is_current(self) -> bool:
        """Whether the caller runs on the loop's thread."""
        return threading.current_thread() is self._thread

    def start(self) -> asyncio.AbstractEventLoop:
        """The running loop. A child of a fork gets one of its own."""
        if self._loop is not None and self._process == os.getpid():
            return self._loop
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._process = os.getpid()
                self._loop = _new_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="llmbroker-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def end(self, closing: Closing) -> None:
        """Run ``closing``, stop the loop and wait for its thread, unless that is the caller's."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._process != os.getpid():
            return
        asyncio.run_coroutine_threadsafe(_close_and_stop(closing), loop)
        if threading.current_thread() is not thread:
            thread.join()


async def _nothing() -> None:
    """What a loop has to close that only runs its callers' work."""


async def _close_and_stop(closing: Closing) -> None:
    try:
        await closing()
    finally:
        asyncio.get_running_loop().stop()


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed: a fifth less CPU per call (docs/decisions.md)."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _end_all() -> None:
    """Cancel what still runs, and wait until it has put away what it holds."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_end_all())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
