"""Migration operations that Django has not."""

from django.db.migrations.operations import RunSQL


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
