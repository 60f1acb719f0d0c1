"""The writer's own connection, beside the pool: a full pool must not hold up the journal.

It writes the rows of all scopes, so it logs in straight into the administration's role. The role
is the connection's from its start and is never set by a statement: behind a PgBouncer that drops
the option the walls refuse the rows, and nobody else is handed the role.
"""

import logging
from typing import Any

import psycopg
from django.db import connections

from tenants.context import ADMINISTRATION

log = logging.getLogger("tenants.walls")

ALIAS = "default"

# The three statements are planned once, for a plan that no table's size or stale statistics
# can turn into a scan of it.
SESSION = {
    "statement_timeout": "10s",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}

# A server that does not even refuse is given up in seconds, so that rows go to the spool.
PATIENCE = {
    "connect_timeout": 2,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
}


def connect() -> psycopg.Connection[Any]:
    """A connection of our own to the journal's database, in autocommit mode."""
    params = {**connections[ALIAS].get_connection_params(), **PATIENCE}
    params |= {"autocommit": True, "prepare_threshold": 0}
    params["options"] = f"{params.get('options', '')} -c role={ADMINISTRATION}".strip()
    del params["cursor_factory"]
    log.debug("through all walls: the journal's own connection")
    connection: psycopg.Connection[Any] = psycopg.Connection.connect(**params)
    for name, value in SESSION.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, value])
    return connection


def is_away(error: psycopg.Error) -> bool:
    """Whether the fault is the server's state and not the row's: the same row may succeed later.

    A deadlock or a lost serialisation is no such state; read-only is what a server that gives
    its place to another one is.
    """
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return not (error.sqlstate or "").startswith("40")
