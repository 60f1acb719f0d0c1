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
from contextlib import suppress
from typing import Any, TypeVar

from llmbroker.loop_thread import LoopThread

Result = TypeVar("Result")

IDLE_SECONDS = 10.0
"""A thread without work for this long ends."""


class Workers:
    """Daemon threads, as many as there is work at once, kept for a while when idle."""

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):  # a child of a fork has none of the threads
            os.register_at_fork(after_in_child=self._start_anew)

    def submit(self, job: _Job) -> None:
        """Have ``job`` done in a thread. Raises RuntimeError where no more can be started."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            worker.start()
        worker.inbox.put(job)

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
        self.inbox: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._workers = workers

    def run(self) -> None:
        while (job := self._next()) is not None:
            job.work()
            # At rest before the result is out: whoever gets it may have more work at once.
            self._workers.rest(self)
            job.deliver()
            del job  # an idle thread must not keep the last value alive

    def _next(self) -> _Job | None:
        while True:
            try:
                return self.inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._workers.leave(self):
                    return None


class _Job:
    """One function on its way through a thread and back to the event loop that waits for it.

    The future is the event loop's own: a concurrent.futures.Future beside it, and the chain
    between the two, would cost as much as the change of threads.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()
        self._function = function
        self._context = contextvars.copy_context()
        self._value: Any = None
        self._error: Exception | None = None

    def work(self) -> None:
        """Run the function, in its caller's context, unless nobody waits for it any more."""
        if self.future.cancelled():
            return
        try:
            self._value = self._context.run(self._function)
        except StopIteration as error:  # a future does not take it
            self._error = RuntimeError(f"StopIteration {error}")
        except Exception as error:  # noqa: BLE001 - raised where the result is wanted
            self._error = error
        except BaseException as error:  # noqa: BLE001 - a tool's sys.exit() ends the tool only
            self._error = RuntimeError(f"the tool left with {type(error).__name__}")

    def deliver(self) -> None:
        """Hand the outcome over to the event loop, if that still runs."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle)

    def fail(self, error: Exception) -> None:
        """It was not run, because of ``error``."""
        self.future.set_exception(error)

    def _settle(self) -> None:
        if self.future.done():
            return
        if self._error is None:
            self.future.set_result(self._value)
        else:
            self.future.set_exception(self._error)


_workers = Workers()


@functools.cache
def _loop() -> LoopThread:
    return LoopThread(_nothing_to_close)


async def _nothing_to_close() -> None:
    """Tools close what they open."""


def in_thread(function: Callable[..., Result], *args: Any) -> asyncio.Future[Result]:
    """A plain function that runs in a thread. Cancelling stops the waiting only."""
    job = _Job(functools.partial(function, *args))
    try:
        _workers.submit(job)
    except RuntimeError as error:  # no more threads: for the caller, the function failed
        job.fail(error)
    return job.future


async def run_in_thread(function: Callable[..., Result], *args: Any) -> Result:
    """The value of a plain function; see ``in_thread``."""
    return await in_thread(function, *args)


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """The value of a coroutine, for blocking code: all run on one loop in a thread of its own."""
    return _loop().run(work)
