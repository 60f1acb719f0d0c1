"""Private files that several processes write: a lock, and JSON that appears whole or not at all."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def open_private(path: Path) -> IO[str]:
    """Open for writing a file that only its owner reads."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return os.fdopen(descriptor, "r+")


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of ``path`` alone; the system frees it when the process dies.

    Without ``wait`` raises BlockingIOError where another process has it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_private(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file, empty if there is no file."""
    if not path.exists():
        return {}
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Replace the file in one step; mode 0600."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with open_private(unfinished) as handle:
        handle.truncate()
        json.dump(data, handle, indent=1)
    unfinished.replace(path)
