"""The database connection of this thread, which is not kept while something else takes its time."""

from __future__ import annotations

from django.db import connection


def release_connection() -> None:
    """Back to the pool; a caller's own transaction keeps it."""
    if not connection.in_atomic_block:
        connection.close()
