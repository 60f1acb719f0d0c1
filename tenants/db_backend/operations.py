"""What only the owner of the tables may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.backends.postgresql import operations


class DatabaseOperations(operations.DatabaseOperations):
    """TRUNCATE passes over row-level security, so the application's role may not do it."""

    connection: Any  # our DatabaseWrapper, whose module imports this one

    def execute_sql_flush(self, sql_list: Iterable[str]) -> None:
        """Empty tables, as their owner."""
        with self.connection.as_owner():
            super().execute_sql_flush(sql_list)
