"""One thread and one connection for all that a worker's runs read and write of the database.

Runs await their checkpoints, which are committed in groups: while one group is being written,
the next one gathers. Nothing here holds up the event loop, and no run holds a connection.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from django.db import Error, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.services.checkpoints import Checkpoint, write_checkpoints
from agents.services.connections import release_connection
from tenants.context import all_tenants
from tenants.database import in_thread

T = TypeVar("T")

GROUP = 200
"""Checkpoints that are committed together at most."""

IDLE = 1.0
"""Seconds without work after which the connection goes back to the pool."""

log = logging.getLogger(__name__)

Done = Future[Any] | asyncio.Future[Any]
Entry = tuple[Done, Checkpoint | Callable[[], Any]]


class Ledger:
    """Takes work from any thread or event loop. Its thread starts with the first work."""

    def __init__(self, *, lent: BaseDatabaseWrapper | None = None) -> None:
        """``lent`` is a connection of the caller's, in whose transaction everything happens."""
        self._lent = lent
        self._entries: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    async def write(self, checkpoint: Checkpoint) -> bool:
        """Return when the checkpoint is durable: whether the run is being cancelled.

        Raises LeaseLostError or CancelRequestedError where it may not be written, and
        django.db.Error where the database fails. Whoever stops waiting does not take it back.
        """
        is_cancelling: bool = await self._awaited(checkpoint)
        return is_cancelling

    async def ask(self, work: Callable[[], T]) -> T:
        """The value of ``work``, which reads or writes rows of all tenants."""
        value: T = await self._awaited(work)
        return value

    async def ask_aside(self, work: Callable[[], T]) -> T:
        """The value of ``work`` as the caller, for what may take long: in a thread of its own."""
        if self._lent is None:
            return await in_thread(work)
        return await self.ask(partial(contextvars.copy_context().run, work))

    def call(self, work: Callable[[], T]) -> T:
        """``ask`` for blocking code."""
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()
        self._submit(done, work)
        return done.result()

    def close(self) -> None:
        """Do what was handed in, and end the thread; further work starts another."""
        with self._starting:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._entries.put(None)
                thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _awaited(self, work: Checkpoint | Callable[[], Any]) -> Any:
        done = asyncio.get_running_loop().create_future()
        self._submit(done, work)
        return await done

    def _submit(self, done: Done, work: Checkpoint | Callable[[], Any]) -> None:
        with self._starting:
            self._entries.put((done, work))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="ledger", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        if self._lent is not None:
            connections[self._lent.alias] = self._lent
        going_on = True
        with all_tenants("the checkpoints of runs", routine=True):
            while going_on:
                group, going_on = self._gather()
                _carry_out(group)
                if not group:
                    release_connection()
        release_connection()

    def _gather(self) -> tuple[list[Entry], bool]:
        """What is there to do, nothing after a while of silence; and whether to go on then."""
        group: list[Entry] = []
        try:
            entry = self._entries.get(timeout=IDLE)
            while entry is not None:
                group.append(entry)
                if len(group) == GROUP:
                    return group, True
                entry = self._entries.get_nowait()
        except queue.Empty:
            return group, True
        return group, False


def _carry_out(group: Sequence[Entry]) -> None:
    """Checkpoints first; of one run, which may be there twice, one after the other."""
    waiting = [(done, work) for done, work in group if isinstance(work, Checkpoint)]
    while waiting:
        first = {checkpoint.lease.run_id: done for done, checkpoint in reversed(waiting)}
        _write([each for each in waiting if first[each[1].lease.run_id] is each[0]])
        waiting = [each for each in waiting if first[each[1].lease.run_id] is not each[0]]
    for done, work in group:
        if not isinstance(work, Checkpoint):
            _settle(done, work)


def _write(batch: Sequence[tuple[Done, Checkpoint]]) -> None:
    """Write all in one transaction; one at a time if the database refuses something of them."""
    try:
        answers = write_checkpoints([checkpoint for _, checkpoint in batch])
    except BaseException as error:  # noqa: BLE001 - raised where the checkpoint is awaited
        if len(batch) > 1 and isinstance(error, Error) and not isinstance(error, OperationalError):
            for each in batch:
                _write([each])
            return
        _recover(error)
        _tell([(done, error) for done, _ in batch])
    else:
        _tell([(done, answer) for (done, _), answer in zip(batch, answers, strict=True)])


def _settle(done: Done, work: Callable[[], Any]) -> None:
    try:
        answer = work()
    except BaseException as error:  # noqa: BLE001 - raised where the value is awaited
        _recover(error)
        answer = error
    _tell([(done, answer)])


def _tell(answers: Sequence[tuple[Done, Any]]) -> None:
    """Give each waiter its answer; those of one event loop with one call to it."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for done, answer in answers:
        if isinstance(done, asyncio.Future):
            by_loop.setdefault(done.get_loop(), []).append((done, answer))
        else:
            _answer(done, answer)
    for loop, waiters in by_loop.items():
        with suppress(RuntimeError):  # the loop is gone, and nobody waits
            loop.call_soon_threadsafe(_answer_all, waiters)


def _answer_all(waiters: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for done, answer in waiters:
        if not done.done():
            _answer(done, answer)


def _answer(done: Done, answer: Any) -> None:
    if isinstance(answer, BaseException):
        done.set_exception(answer)
    else:
        done.set_result(answer)


def _recover(error: BaseException) -> None:
    """A connection that is broken is not used again."""
    if isinstance(error, Error):
        release_connection()
