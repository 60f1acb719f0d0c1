"""The backend. The stamp is local to a transaction, so that no pool can carry it further.

Within a transaction it is sent before the first query and whenever the scope has changed;
after ROLLBACK TO SAVEPOINT again, as that takes it back on the server. A single query in
autocommit mode gets a short transaction of its own, which ends before any row is handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg.pq import TransactionStatus

from tenants.context import Where, current
from tenants.db_backend.operations import DatabaseOperations
from tenants.db_backend.stamp import stamp

_UNKNOWN: Any = object()
"""What the server has been told may have been taken back."""

_LOGIN = "none"
"""PostgreSQL's word for the role that logged in."""

# A role that is not there yet (before the first migration) is not assumed: the system checks
# and the start of web and worker refuse to go on like that.
_REST = "SELECT set_config('role', rolname, false) FROM pg_roles WHERE rolname = %s"


def _is_broken(connection: Any) -> bool:
    """Whether its transaction waits for nothing but ROLLBACK, which takes the role back too."""
    status: TransactionStatus = connection.info.transaction_status
    return status is TransactionStatus.INERROR


class StampingCursor(CursorWrapper):
    """Runs every statement under the stamp of the scope that is active now."""

    def _execute(self, sql: Any, params: Any, *ignored: Any) -> Any:
        with self.db.stamped():
            return super()._execute(sql, params, *ignored)  # type: ignore[misc]

    def _executemany(self, sql: Any, param_list: Any, *ignored: Any) -> Any:
        with self.db.stamped():
            return super()._executemany(sql, param_list, *ignored)  # type: ignore[misc]


class StampingDebugCursor(CursorDebugWrapper, StampingCursor):
    """The same, with Django's record of queries."""


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection, and what its open transaction has been told."""

    ops: DatabaseOperations
    ops_class = DatabaseOperations

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._told: Where | None = None
        self._resting_role = _LOGIN
        self._owner = self.alias == NO_DB_ALIAS  # which creates and drops databases

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        """Without the record of queries."""
        return StampingCursor(cursor, self)

    def make_debug_cursor(self, cursor: Any) -> CursorDebugWrapper:
        """With it."""
        return StampingDebugCursor(cursor, self)

    @contextmanager
    def stamped(self) -> Iterator[None]:
        """Run one statement under the stamp of the active scope."""
        where = current()
        if self.connection is None or self._owner:
            yield
        elif self.in_atomic_block or not self.get_autocommit():
            self._tell(where)
            yield
        elif where is None:
            yield
        else:
            with self._own_transaction(where):
                yield

    @contextmanager
    def as_owner(self) -> Iterator[None]:
        """Run the block as the role that logged in: migrations, and emptying test databases."""
        former, self._owner = self._owner, True
        self._rest()
        try:
            yield
        finally:
            self._owner = former
            if self.connection is not None and not _is_broken(self.connection):
                self._rest()

    def init_connection_state(self) -> None:
        """Take the role in which the connection rests."""
        super().init_connection_state()
        self._rest()
        self._told = None

    def _rest(self) -> None:
        """A connection from the pool keeps its role: that is asked of it, not of the server."""
        connection = self.connection
        if connection is None:
            return
        wanted = _LOGIN if self._owner else (settings.DATABASE_ROLE or _LOGIN)
        if getattr(connection, "resting_role", _LOGIN) != wanted:
            self._told = _UNKNOWN
            with self.wrap_database_errors:
                if wanted == _LOGIN:
                    connection.execute("RESET ROLE")
                    connection.resting_role = _LOGIN
                elif connection.execute(_REST, [wanted]).fetchone():
                    connection.resting_role = wanted
        self._resting_role = getattr(connection, "resting_role", _LOGIN)

    def _tell(self, where: Where | None) -> None:
        if where != self._told:
            self.connection.execute(stamp(where, self._resting_role))
            self._told = where

    @contextmanager
    def _own_transaction(self, where: Where) -> Iterator[None]:
        try:
            with self.wrap_database_errors:
                self.connection.execute(f"BEGIN; {stamp(where, self._resting_role)}")
            yield
        except BaseException:
            if not self.connection.closed:
                self.connection.execute("ROLLBACK")
            raise
        with self.wrap_database_errors:
            self.connection.execute("COMMIT")

    def _set_autocommit(self, autocommit: bool) -> None:  # noqa: FBT001 - Django's signature
        self._told = None
        super()._set_autocommit(autocommit)  # type: ignore[misc]

    def _commit(self) -> Any:
        self._told = None
        return super()._commit()  # type: ignore[misc]

    def _rollback(self) -> Any:
        self._told = None
        return super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._told = _UNKNOWN
