"""One thread that quick calls share.

To hand a call over to a thread of its own takes longer than a quick call does; those that come
while this one is at work cost next to nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from llmbroker.tools.jobs import Job

STUCK = 0.02
"""Seconds that a call may take here when others wait behind it. More than CPython's switch
interval, which a thread may wait to begin."""

IDLE_SECONDS = 10.0
"""A thread without work for this long ends."""


class Express(threading.Thread):
    """Retires when it is idle for long, or stuck in a call; then it takes no more."""

    def __init__(self) -> None:
        super().__init__(name="llmbroker-tools", daemon=True)
        self._jobs: deque[Job] = deque()
        self._lock = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._is_awake = False
        self._is_retired = False
        self._began = 0.0

    def submit(self, job: Job) -> bool:
        """Take ``job``; False if it takes no more."""
        with self._lock:
            if self._is_retired:
                return False
            self._jobs.append(job)
            if not self._is_awake:
                self._is_awake, self._began = True, time.monotonic()
                self._bell.release()
            return True

    def stuck(self) -> list[Job] | None:
        """The jobs that wait behind one that has turned out slow, to be done by others.

        None while there is reason to look again.
        """
        with self._lock:
            if not self._jobs:
                return []
            if time.monotonic() - self._began < STUCK:
                return None
            self._is_retired = True
            jobs = list(self._jobs)
            self._jobs.clear()
            return jobs

    def run(self) -> None:
        """The thread's."""
        while self._is_wanted():
            while (job := self._next()) is not None:
                job.work()
                job.deliver()
                del job  # an idle thread must not keep the last value alive

    def _is_wanted(self) -> bool:
        if self._is_retired:
            return False
        is_rung = self._bell.acquire(timeout=IDLE_SECONDS)
        with self._lock:
            if not is_rung and self._is_awake:
                self._bell.acquire()  # rung at the last moment: it is free, and must not stay so
            elif not is_rung:
                self._is_retired = True
            return not self._is_retired

    def _next(self) -> Job | None:
        with self._lock:
            if not self._jobs:
                self._is_awake = False
                return None
            self._began = time.monotonic()
            return self._jobs.popleft()
