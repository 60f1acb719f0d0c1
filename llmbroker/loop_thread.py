"""One event loop in a thread of its own, for blocking callers of async code."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Started on first use, so that a process which forks before that has nothing to inherit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._owner = os.getpid()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run ``work`` on the loop and wait for its result.

        Raises RuntimeError when called from the loop itself, which would wait for ever.
        """
        loop = self._started()
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "a blocking Broker was called on its own event loop: use AsyncBroker"
            )
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Stop the loop and wait for its thread. A later ``run`` starts a new one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._owner != os.getpid():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    @property
    def started(self) -> bool:
        """Whether there is a loop in this process."""
        return self._loop is not None and self._owner == os.getpid()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is not None and self._owner == os.getpid():
            return self._loop
        with self._lock:
            if self._loop is None or self._owner != os.getpid():
                self._owner = os.getpid()
                self._loop = _new_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="llmbroker-loop", daemon=True
                )
                self._thread.start()
            return self._loop


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed: a fifth less CPU per call (docs/decisions.md)."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
