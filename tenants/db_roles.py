"""The database's roles: who may do what, beside which rows.

``broker_app`` is what requests and workers run as: it reads and writes rows within the walls.
``broker_admin`` passes the walls by a policy of each table, for the admin site and maintenance.
The role that logs in owns the tables, migrates, and is neither while the application runs.
"""

from __future__ import annotations

from django.db import connections, transaction
from psycopg.sql import SQL, Identifier

from tenants.context import ADMINISTRATION, APPLICATION
from tenants.db_backend.base import DatabaseWrapper

ROLES = (APPLICATION, ADMINISTRATION)

RIGHTS = {"django_migrations": "SELECT", "tenants_auditentry": "SELECT, INSERT"}
"""Of tables that the application may not change freely."""

_TABLES = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace
  AND c.relkind IN ('r', 'p') AND c.relispartition = %s
"""


def database(using: str) -> DatabaseWrapper:
    """The connection, which is our backend's."""
    connection = connections[using]
    if not isinstance(connection, DatabaseWrapper):
        raise TypeError(f"the database {using!r} does not use the engine tenants.db_backend")
    return connection


def ensure_roles(using: str) -> None:
    """Make the roles where they are missing, and let the login role take them on.

    Roles belong to the whole server: another installation may make them at the same moment.
    """
    with database(using).as_owner(), connections[using].cursor() as cursor:
        for role in ROLES:
            cursor.execute(
                SQL(
                    "DO $$ BEGIN CREATE ROLE {} NOLOGIN;"
                    " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
                ).format(Identifier(role))
            )
            cursor.execute("SELECT pg_has_role(session_user, %s, 'MEMBER')", [role])
            if not cursor.fetchone()[0]:
                _let_login_take(using, role)


def _let_login_take(using: str, role: str) -> None:
    """Membership to be taken on by SET ROLE. Where the server can say so, it is not inherited.

    Before PostgreSQL 16 it is, by the owner alone, who runs as itself during migrations only.
    """
    connection = connections[using]
    with connection.cursor() as cursor:
        grant = SQL("GRANT {} TO SESSION_USER").format(Identifier(role))
        if connection.get_database_version() >= (16,):
            grant += SQL(" WITH INHERIT FALSE, SET TRUE")
        cursor.execute(grant)


def grant_privileges(using: str) -> None:
    """Give the roles every table but the partitions, which have no policies of their own."""
    connection = connections[using]
    with (
        database(using).as_owner(),
        transaction.atomic(using),
        connection.cursor() as cursor,
    ):
        roles = SQL(", ").join(map(Identifier, ROLES))
        cursor.execute("SELECT quote_ident(current_schema())")
        schema = SQL(cursor.fetchone()[0])
        cursor.execute(SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, roles))
        for name in _tables(using, partitions=False):
            _grant(using, name, roles)
        for name in _tables(using, partitions=True):
            cursor.execute(SQL("REVOKE ALL ON {} FROM {}").format(Identifier(name), roles))
        cursor.execute(
            SQL("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {} TO {}").format(schema, roles)
        )


def _tables(using: str, *, partitions: bool) -> list[str]:
    with connections[using].cursor() as cursor:
        cursor.execute(_TABLES, [partitions])
        return [name for (name,) in cursor.fetchall()]


def _grant(using: str, name: str, roles: object) -> None:
    rights = SQL(RIGHTS.get(name, "SELECT, INSERT, UPDATE, DELETE"))
    with connections[using].cursor() as cursor:
        cursor.execute(SQL("GRANT {} ON {} TO {}").format(rights, Identifier(name), roles))
        if name == "tenants_auditentry":  # for the erasure of a tenant, which a trigger checks
            cursor.execute(
                SQL("GRANT DELETE ON {} TO {}").format(Identifier(name), Identifier(ADMINISTRATION))
            )
