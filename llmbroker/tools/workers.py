"""Threads that run plain tools, and a loop that runs coroutine tools for blocking code.

A thread cannot be stopped, so a pool of a fixed size is lost once that many tools hang. Here
a thread that does not come back is simply not waited for: the next call takes another.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from llmbroker.loop_thread import LoopThread

Result = TypeVar("Result")
Work = tuple["Future[Any]", Callable[[], Any]]

IDLE_SECONDS = 10.0
"""A thread without work for this long ends."""


class Workers:
    """Daemon threads, as many as there is work at once, kept for a while when idle."""

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):  # a child of a fork has none of the threads
            os.register_at_fork(after_in_child=self._start_anew)

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Run ``work`` in a thread, in the caller's context."""
        future: Future[Result] = Future()
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            try:
                worker.start()
            except RuntimeError as error:  # no more threads: for the caller, the work failed
                future.set_exception(error)
                return future
        worker.inbox.put((future, functools.partial(contextvars.copy_context().run, work)))
        return future

    def _start_anew(self) -> None:
        self._idle.clear()
        self._lock = threading.Lock()

    def rest(self, worker: _Worker) -> None:
        """``worker`` has nothing to do."""
        with self._lock:
            self._idle.append(worker)

    def leave(self, worker: _Worker) -> bool:
        """Whether ``worker`` may end; False when work is on its way to it."""
        with self._lock:
            if worker not in self._idle:
                return False
            self._idle.remove(worker)
            return True


class _Worker(threading.Thread):
    def __init__(self, workers: Workers) -> None:
        super().__init__(name="llmbroker-tool", daemon=True)
        self.inbox: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._workers = workers

    def run(self) -> None:
        while (work := self._next()) is not None:
            future, function = work
            if future.set_running_or_notify_cancel():
                settle = _outcome(future, function)
                # At rest before the result is out: whoever gets it may have more work at once.
                self._workers.rest(self)
                settle()
                del settle
            else:
                self._workers.rest(self)
            del work, future, function  # an idle thread must not keep the last value alive

    def _next(self) -> Work | None:
        while True:
            try:
                return self.inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._workers.leave(self):
                    return None


def _outcome(future: Future[Any], function: Callable[[], Any]) -> Callable[[], None]:
    """Run ``function``; returns what puts its value or exception into ``future``."""
    try:
        return functools.partial(future.set_result, function())
    except StopIteration as error:  # asyncio would never deliver it
        return functools.partial(future.set_exception, RuntimeError(f"StopIteration {error}"))
    except Exception as error:  # noqa: BLE001 - raised where the result is wanted
        return functools.partial(future.set_exception, error)
    except BaseException as error:  # noqa: BLE001 - a tool's sys.exit() ends the tool only
        left = RuntimeError(f"the tool left with {type(error).__name__}")
        return functools.partial(future.set_exception, left)


_workers = Workers()


@functools.cache
def _loop() -> LoopThread:
    return LoopThread(_nothing_to_close)


async def _nothing_to_close() -> None:
    """Tools close what they open."""


def in_thread(function: Callable[..., Result], *args: Any) -> asyncio.Future[Result]:
    """A plain function that runs in a thread. Cancelling stops the waiting only."""
    return asyncio.wrap_future(_workers.submit(functools.partial(function, *args)))


async def run_in_thread(function: Callable[..., Result], *args: Any) -> Result:
    """The value of a plain function; see ``in_thread``."""
    return await in_thread(function, *args)


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """The value of a coroutine, for blocking code: all run on one loop in a thread of its own."""
    return _loop().run(work)
