"""Where rows wait while the database is away: a file of this process, one JSON line a row.

Appended and synced before a caller goes on; read back in order when the database is there
again. Reading it twice changes nothing, since rows carry ids of ours, so the file goes only
when all of it is written. What a killed process leaves behind, another one takes over: a
lock on the file says whether its process lives.
"""

from __future__ import annotations

import fcntl
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeAlias

import orjson
from uuid_utils import uuid7

from journal.batches import Kind, Record
from llmbroker.errors import LLMBrokerError

log = logging.getLogger(__name__)

CHUNK = 100
ADOPT_SECONDS = 60.0

Write: TypeAlias = Callable[[Sequence[Record]], list[LLMBrokerError | None]]


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
        self._path = folder
        self._file: BinaryIO | None = None
        self._since = 0.0
        self._adopted_at: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of this process waits."""
        return self._file is None

    def fault(self) -> LLMBrokerError | None:
        """Why no new call may begin, if so."""
        if self._file is None:
            return None
        seconds = self._clock() - self._since
        if self._file.tell() < self._max_bytes and seconds < self._max_seconds:
            return None
        return LLMBrokerError(
            f"the journal's database has been away for {seconds:.0f} s and its spool is full:"
            " no new calls until it is back"
        )

    def append(self, records: Sequence[Record]) -> None:
        """Keep ``records``; they are on the disk when this returns."""
        if not records:
            return
        file = self._file or self._open()
        file.write(b"".join(map(_line, records)))
        file.flush()
        os.fsync(file.fileno())

    def replay(self, write: Write) -> None:
        """Write everything that waits, in order; first what other processes left behind."""
        self._adopt(write)
        if self._file is None:
            return
        file = self._file
        file.seek(0)
        try:
            _replay(file, write)
        finally:
            file.seek(0, os.SEEK_END)
        self._path.unlink()
        self._file = None
        file.close()

    def close(self) -> None:
        """Leave what still waits to whoever comes next."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self) -> BinaryIO:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = self._folder / f"{os.getpid()}-{uuid7()}.jsonl"
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "r+b")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        _sync_folder(self._folder)
        self._since = self._clock()
        return self._file

    def _adopt(self, write: Write) -> None:
        """Write what processes left behind that are gone; looked for once a minute."""
        now = self._clock()
        if self._adopted_at is not None and now - self._adopted_at < ADOPT_SECONDS:
            return
        for path in sorted(self._folder.glob("*.jsonl")):
            if self._file is not None and path == self._path:
                continue
            with path.open("r+b") as file:
                if _locked(file):
                    log.warning("journal: writing the rows that %s left behind", path.name)
                    _replay(file, write)
                    path.unlink()
        self._adopted_at = now


def _replay(file: BinaryIO, write: Write) -> None:
    records = _records(file)
    while chunk := list(itertools.islice(records, CHUNK)):
        for record, fault in zip(chunk, write(chunk), strict=True):
            if fault is not None:  # its scope is gone, most likely: nobody is left to tell
                log.error("journal: a waiting row was refused: %s (%s)", fault, record.row["id"])


def _records(file: BinaryIO) -> Iterator[Record]:
    for line in file:
        if line.endswith(b"\n"):  # else a process was killed before its caller was told
            kind, row = orjson.loads(line)
            yield Record(Kind(kind), row)


def _line(record: Record) -> bytes:
    return orjson.dumps([record.kind.value, record.row], option=orjson.OPT_APPEND_NEWLINE)


def _locked(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
