"""The writer of this process: made with its first row, and anew in a child of a fork."""

import atexit
import functools
import os
from pathlib import Path

from django.conf import settings

from journal.spool import Spool
from journal.writer import GroupWriter


@functools.cache
def process_writer() -> GroupWriter:
    """The one writer that all brokers of this process share."""
    spool = Spool(
        Path(settings.JOURNAL_SPOOL_DIR),
        max_bytes=settings.JOURNAL_SPOOL_MAX_BYTES,
        max_seconds=settings.JOURNAL_SPOOL_MAX_SECONDS,
    )
    writer = GroupWriter(spool)
    atexit.register(_close, writer, os.getpid())
    return writer


def _close(writer: GroupWriter, owner: int) -> None:
    """A fork inherits this call, but neither the thread nor the right to the connection."""
    if os.getpid() == owner:
        writer.close()


os.register_at_fork(after_in_child=process_writer.cache_clear)
