"""Group commit: one thread and one connection write what all callers of a process hand in.

A caller waits until its row is durable: in PostgreSQL, or, while that is away, in the spool.
Batches form by themselves: while one is being committed, the next one gathers.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import psycopg

from journal.batches import Kind, Record, write_possible
from journal.connections import connect, is_away
from journal.spool import Spool
from llmbroker.errors import LLMBrokerError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How the writer gathers rows and how it waits; all but ``batch`` in seconds."""

    batch: int = 100
    window: float = 0.002
    """How long a batch waits for company, unless the one before it had none."""
    idle: float = 10.0
    """How long without rows until the connection is given up."""
    retry: float = 1.0
    """How long between two attempts to reach a database that is away."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record on its way; ``done`` is resolved when it is durable."""

    record: Record
    done: Future[None] = field(default_factory=Future)

    def __post_init__(self) -> None:
        # What is handed in is written: a caller that goes away cannot take it back.
        self.done.set_running_or_notify_cancel()

    def settle(self, fault: LLMBrokerError | None) -> None:
        """Tell the caller."""
        if fault is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(fault)


class GroupWriter:
    """Takes records from any thread or event loop. Its thread starts with the first one."""

    def __init__(
        self,
        spool: Spool,
        *,
        connect: Callable[[], psycopg.Connection[Any]] = connect,
        pace: Pace = Pace(),
    ) -> None:
        self._spool = spool
        self._connect = connect
        self._pace = pace
        self._entries: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._connection: psycopg.Connection[Any] | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._next_attempt = 0.0
        self._crowded = False

    def submit(self, record: Record) -> Future[None]:
        """Hand in a record. The future fails with LLMBrokerError if it cannot be kept."""
        entry = Entry(record)
        with self._starting:
            self._entries.put(entry)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="journal-writer", daemon=True
                )
                self._thread.start()
        return entry.done

    def close(self) -> None:
        """Write what was handed in, and give up thread and connection; ``submit`` starts anew."""
        with self._starting:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._entries.put(None)
                thread.join()

    def _serve(self) -> None:
        going_on = True
        while going_on:
            batch, going_on = self._gather()
            try:
                self._write(batch)
            except Exception as error:  # noqa: BLE001 - the thread must outlive any fault
                _give_up(batch, error)
        self._disconnect()
        self._spool.close()

    def _gather(self) -> tuple[list[Entry], bool]:
        """The next batch, empty after a while of silence, and whether to go on after it."""
        batch: list[Entry] = []
        deadline = time.monotonic() + self._patience()
        try:
            while len(batch) < self._pace.batch:
                entry = self._entries.get(timeout=max(0.0, deadline - time.monotonic()))
                if entry is None:
                    return batch, False
                if not batch:
                    window = self._pace.window if self._crowded else 0.0
                    deadline = time.monotonic() + window
                batch.append(entry)
        except queue.Empty:
            pass
        self._crowded = len(batch) > 1
        return batch, True

    def _patience(self) -> float:
        """How long to wait for a row: not at all while others can be written back meanwhile."""
        if self._spool.is_empty:
            return self._pace.idle
        return min(self._pace.retry, max(0.0, self._next_attempt - time.monotonic()))

    def _write(self, batch: list[Entry]) -> None:
        if not batch and self._spool.is_empty:
            self._disconnect()
        elif time.monotonic() < self._next_attempt:
            self._to_spool(batch)
        else:
            self._to_database(batch)

    def _to_database(self, batch: list[Entry]) -> None:
        started = time.monotonic()
        try:
            connection = self._connected()
            self._spool.write_back(lambda records: write_possible(connection, records))
            if self._spool.has_own:
                self._to_spool(batch)
                return
            faults = write_possible(connection, [entry.record for entry in batch])
        except psycopg.Error as error:
            if not is_away(error):
                raise
            log.warning("journal: the database is away (%s)", type(error).__name__)
            self._disconnect()
            # An attempt that took long (nobody even refused) must not hold up every batch.
            ended = time.monotonic()
            self._next_attempt = ended + max(self._pace.retry, 4 * (ended - started))
            self._to_spool(batch)
        else:
            for entry, fault in zip(batch, faults, strict=True):
                entry.settle(fault)

    def _to_spool(self, batch: list[Entry]) -> None:
        """Keep the rows here. A full spool refuses new calls, never the outcome of one."""
        full = self._spool.fault()
        kept = [entry for entry in batch if full is None or entry.record.kind is Kind.OUTCOME]
        self._spool.append([entry.record for entry in kept])
        for entry in batch:
            entry.settle(full if entry.record.kind is Kind.INTENT else None)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _give_up(batch: list[Entry], error: Exception) -> None:
    log.error("journal: %d rows could not be kept", len(batch), exc_info=error)
    for entry in batch:
        if not entry.done.done():
            entry.settle(LLMBrokerError(f"the journal cannot be written: {type(error).__name__}"))
