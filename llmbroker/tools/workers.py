"""Threads that run plain tools, and a loop that runs coroutine tools for blocking code.

A thread cannot be stopped, so a pool of a fixed size is lost once that many tools hang. Here
a thread that does not come back is simply not waited for: the next call takes another. Functions
that have always been quick share one.
"""

from __future__ import annotations

import asyncio
import functools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from llmbroker.loop_thread import LoopThread
from llmbroker.tools.express import IDLE_SECONDS, STUCK, Express
from llmbroker.tools.jobs import Job, Post
from llmbroker.tools.tempo import tempo

Result = TypeVar("Result")


class Workers:
    """Daemon threads, as many as there is work at once, kept for a while when idle."""

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()
        self._lock = threading.Lock()
        self._express: Express | None = None
        if hasattr(os, "register_at_fork"):  # a child of a fork has none of the threads
            os.register_at_fork(after_in_child=self._start_anew)

    def submit(self, job: Job) -> None:
        """Have ``job`` done in a thread. Raises RuntimeError where no more can be started."""
        if tempo.is_quick(job.function):
            self._share(job)
        else:
            self._start(job)

    def _share(self, job: Job) -> None:
        express = self._express
        if express is None or not express.submit(job):
            express = self._express = Express()
            express.submit(job)  # before it starts, and so before it could end again
            express.start()
        if not job.post.is_watching:
            job.post.is_watching = True
            asyncio.get_running_loop().call_later(STUCK, self._watch, job.post)

    def _watch(self, post: Post) -> None:
        """See to it that a quick function that is slow this time holds up no other."""
        jobs = self._express.stuck() if self._express is not None else []
        if jobs is None:
            asyncio.get_running_loop().call_later(STUCK, self._watch, post)
            return
        post.is_watching = False
        for job in jobs:
            try:
                self._start(job)
            except RuntimeError as error:
                job.fail(error)

    def _start(self, job: Job) -> None:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            worker.start()
        worker.inbox.put(job)

    def _start_anew(self) -> None:
        self._idle.clear()
        self._lock = threading.Lock()
        self._express = None

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
        self.inbox: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._workers = workers

    def run(self) -> None:
        while (job := self._next()) is not None:
            job.work()
            # At rest before the result is out: whoever gets it may have more work at once.
            self._workers.rest(self)
            job.deliver()
            del job  # an idle thread must not keep the last value alive

    def _next(self) -> Job | None:
        while True:
            try:
                return self.inbox.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._workers.leave(self):
                    return None


_workers = Workers()


@functools.cache
def _loop() -> LoopThread:
    return LoopThread(_nothing_to_close)


async def _nothing_to_close() -> None:
    """Tools close what they open."""


def in_thread(
    work: Callable[..., Result], *args: Any, function: object = None
) -> asyncio.Future[Result]:
    """A plain function that runs in a thread. Cancelling stops the waiting only.

    ``function`` is what ``work`` calls in the end, where that is another at each call.
    """
    job = Job(functools.partial(work, *args), work if function is None else function)
    try:
        _workers.submit(job)
    except RuntimeError as error:  # no more threads: for the caller, the function failed
        job.fail(error)
    return job.future


async def run_in_thread(work: Callable[..., Result], *args: Any, function: object = None) -> Result:
    """The value of a plain function; see ``in_thread``."""
    return await in_thread(work, *args, function=function)


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """The value of a coroutine, for blocking code: all run on one loop in a thread of its own."""
    return _loop().run(work)
