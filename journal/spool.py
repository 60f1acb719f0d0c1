"""Where rows wait while the database is away: a file of this process, one JSON line a row.

Appended and synced before a caller goes on; written back in order, a little at a time, when
the database is there again, so that callers need not wait for a long outage's rows. Writing a
row twice changes nothing, since rows carry ids of ours, so a file goes only when all of it is
written. What a killed process leaves behind, another one takes over: a lock on the file says
whether its process lives.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Self, TypeAlias

import orjson
from uuid_utils import uuid7

from journal.batches import Kind, Record
from llmbroker.errors import LLMBrokerError

log = logging.getLogger(__name__)

CHUNK = 500
ADOPT_SECONDS = 60.0

Write: TypeAlias = Callable[[Sequence[Record]], list[LLMBrokerError | None]]


class SpoolFile:
    """An open and locked file of waiting rows, and how far it has been written back."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._written = 0
        self._size = file.seek(0, os.SEEK_END)

    @classmethod
    def new(cls, folder: Path) -> Self:
        """A file of this process."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{os.getpid()}-{uuid7()}.jsonl"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        file = os.fdopen(descriptor, "r+b")
        fcntl.flock(file, fcntl.LOCK_EX)
        _sync_folder(folder)
        return cls(path, file)

    @classmethod
    def left_behind(cls, path: Path) -> Self | None:
        """The file of a process that is gone; None while it lives, or where another was quicker."""
        try:
            file = path.open("r+b")
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return cls(path, file)

    @property
    def waiting(self) -> int:
        """Bytes of rows that are not written back."""
        return self._size - self._written

    def append(self, records: Sequence[Record]) -> None:
        """Keep ``records``; they are on the disk when this returns, or none is in the file."""
        lines = b"".join(map(_line, records))
        descriptor = self._file.fileno()  # not the file: its buffer would keep what failed
        try:
            _write_at(descriptor, lines, self._size)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, self._size)
            raise
        self._size += len(lines)

    def write_back(self, write: Write) -> bool:
        """Write the oldest rows that wait; whether that was all of them."""
        self._file.seek(self._written)
        lines = [line for line in (self._file.readline() for _ in range(CHUNK)) if _whole(line)]
        records = [_record(line) for line in lines]
        for record, fault in zip(records, write(records), strict=True):
            if fault is not None:  # its scope is gone, most likely: nobody is left to tell
                log.error("journal: a waiting row was refused: %s (%s)", fault, record.row["id"])
        self._written += sum(map(len, lines))
        return len(lines) < CHUNK

    def remove(self) -> None:
        """Its rows are all written."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Leave it to whoever comes next."""
        self._file.close()


class Spool:
    """The rows of one process, within ``max_bytes`` and ``max_seconds`` for new calls."""

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        max_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._max_bytes, self._max_seconds = max_bytes, max_seconds
        self._clock = clock
        self._own: SpoolFile | None = None
        self._adopted: SpoolFile | None = None
        self._away_since = 0.0
        self._looked_at: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no row waits that this process has to write."""
        return self._own is None and self._adopted is None

    @property
    def has_own(self) -> bool:
        """Whether rows of this process wait: those that follow have to queue behind them."""
        return self._own is not None

    def fault(self) -> LLMBrokerError | None:
        """Why no new call may begin, if so."""
        if self._own is None:
            return None
        seconds = self._clock() - self._away_since
        if self._own.waiting < self._max_bytes and seconds < self._max_seconds:
            return None
        return LLMBrokerError(
            f"the journal's database has been away for {seconds:.0f} s and its spool is full:"
            " no new calls until it is back"
        )

    def append(self, records: Sequence[Record]) -> None:
        """Keep ``records``; they are on the disk when this returns."""
        if not records:
            return
        if self._own is None:
            self._own = SpoolFile.new(self._folder)
            self._away_since = self._clock()
        self._own.append(records)

    def write_back(self, write: Write) -> None:
        """Write some of what waits, in order: our own rows, and what killed processes left."""
        self._adopt()
        if self._adopted is not None and self._adopted.write_back(write):
            self._adopted.remove()
            self._adopted, self._looked_at = None, None
        if self._own is None:
            return
        if self._own.write_back(write):
            self._own.remove()
            self._own = None
        self._away_since = self._clock()

    def close(self) -> None:
        """Leave what still waits to whoever comes next."""
        for file in (self._own, self._adopted):
            if file is not None:
                file.close()
        self._own = self._adopted = None

    def _adopt(self) -> None:
        """Take over a file whose process is gone; looked for once a minute, then one by one."""
        now = self._clock()
        looked = self._looked_at is not None and now - self._looked_at < ADOPT_SECONDS
        if self._adopted is not None or looked:
            return
        self._looked_at = now
        for path in sorted(self._folder.glob("*.jsonl")):
            if self._own is None or path != self._own.path:
                self._adopted = SpoolFile.left_behind(path)
            if self._adopted is not None:
                log.warning("journal: writing the rows that %s left behind", path.name)
                return


def _whole(line: bytes) -> bool:
    """Else it is the end, or a process was killed before its caller was told."""
    return line.endswith(b"\n")


def _record(line: bytes) -> Record:
    kind, row = orjson.loads(line)
    return Record(Kind(kind), row)


def _line(record: Record) -> bytes:
    return orjson.dumps([record.kind.value, record.row], option=orjson.OPT_APPEND_NEWLINE)


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
