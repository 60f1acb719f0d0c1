"""SQL that migrations of several apps repeat."""

from django.db.migrations.operations import RunSQL

from tenants.walls import Wall


def same_tenant(table: str, column: str, references: str) -> RunSQL:
    """A composite foreign key: the row that ``column`` names belongs to this row's tenant.

    Django's own key holds the reference; this one holds the wall. It needs a unique
    constraint on (id, tenant_id) of the referenced table, and lets a NULL column pass.
    """
    name = f"{table}_{column}_same_tenant"
    return RunSQL(
        sql=(
            f"ALTER TABLE {table} ADD CONSTRAINT {name}"
            f" FOREIGN KEY ({column}, tenant_id) REFERENCES {references} (id, tenant_id)"
            " DEFERRABLE INITIALLY DEFERRED"
        ),
        reverse_sql=f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


def raise_walls(table: str, wall: Wall) -> RunSQL:
    """Row-level security on a tenant's table, forced on its owner as well.

    The roles that its policies name are made by ``migrate`` before it begins (tenants/db_roles).
    """
    names = [statement.split()[2] for statement in wall.policies(table) if "POLICY" in statement]
    return RunSQL(
        sql=[*wall.policies(table)],
        reverse_sql=[
            f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY",
            f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
            *(f"DROP POLICY {name} ON {table}" for name in names),
        ],
    )
