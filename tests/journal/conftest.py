"""Calls in the journal, beside the cast of tests/conftest.py."""

import tempfile
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest

from journal.models import Call
from tests.journal.support import NOON
from tests.support.postgres_server import PostgresServer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL that a test may stop."""
    # Not below pytest's own folder, which every pytest on this machine closes to other accounts.
    with tempfile.TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder))
        server.start()
        server.migrate()
        yield server
        server.stop()


@pytest.fixture
def up(server):
    """The same, up and without calls."""
    server.start()
    with server.connect() as connection:
        connection.execute("TRUNCATE journal_call CASCADE")
    return server


@pytest.fixture
def journaled():
    """Write a call straight into the table: ``journaled(alice, ts=…, **columns)``.

    The ids are UUIDv7 of ``ts``, rising within a millisecond as those of one process do.
    """
    number = count()

    def write(person, ts=NOON, **columns):
        milliseconds = (ts - EPOCH) // timedelta(milliseconds=1)
        return Call.objects.create(
            id=UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | next(number)),
            scope_id=person.scope.id,
            tenant_id=person.scope.tenant_id,
            ts=ts,
            **{"llm_name": "small", "status": "ok", **columns},
        )

    return write
