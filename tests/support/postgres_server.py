"""A PostgreSQL of the test's own, with the project's tables, to be stopped and started again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from broker_project.local.embedded import Address
from broker_project.local.ports import free_port
from broker_project.local.postgres import Postgres
from journal.connections import SESSION
from tests.support.worker import ROOT, services


class PostgresServer:
    """The embedded server in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._server = Postgres(folder / "cluster", folder / "log")
        self._address = Address(free_port(), "secret")
        self._runs = False

    @property
    def environment(self) -> dict[str, str]:
        """Of a process of the project that is to use this server."""
        return {**os.environ, **services(), "DATABASE_URL": self._server.url(self._address)}

    def start(self) -> None:
        if not self._runs:
            self._server.start(self._address)
        self._runs = True

    def stop(self) -> None:
        if self._runs:
            self._server.stop(self._address)
        self._runs = False

    def migrate(self) -> None:
        command = [sys.executable, "manage.py", "migrate", "-v0"]
        subprocess.run(command, cwd=ROOT, env=self.environment, check=True)

    def connect(self) -> psycopg.Connection[Any]:
        """As the journal's writer does, but past all walls."""
        connection: psycopg.Connection[Any] = psycopg.connect(
            self._server.url(self._address), autocommit=True, connect_timeout=2, prepare_threshold=0
        )
        for name, value in SESSION.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        return connection

    def rows(self) -> list[Any]:
        """Id and status of all calls."""
        with self.connect() as connection:
            return connection.execute("SELECT id, status FROM journal_call ORDER BY id").fetchall()

    def ids(self) -> list[UUID]:
        return [identity for identity, _ in self.rows()]

    def statuses(self) -> list[str]:
        return sorted(status for _, status in self.rows())
