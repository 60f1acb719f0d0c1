"""How rows tell whose they are: one description per table, from which both walls are made.

The first is a filter of the ORM (``tenants.managers``), the second row-level security in the
database, made by the migration operation ``RaiseWalls``. They are told apart on purpose: the
filter forgets nobody, and whoever goes round it meets the database.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenants.context import ADMINISTRATION, WHOLE_TENANT

_TENANT = "NULLIF(current_setting('app.tenant_id', true), '')::uuid"
_WHOLE = f"current_setting('app.scope_id', true) = '{WHOLE_TENANT}'"
_SCOPE = f"NULLIF(NULLIF(current_setting('app.scope_id', true), ''), '{WHOLE_TENANT}')::uuid"
_LOOKUP = "NULLIF(current_setting('app.lookup', true), '')"

SHARED_SCOPE = (
    "{row}.scope_id = (SELECT shared.id FROM tenants_scope shared"
    " WHERE shared.tenant_id = {tenant} AND shared.kind = 'shared')"
)
"""For ``also_read``: rows of the tenant's shared scope."""


@dataclass(frozen=True, slots=True)
class Wall:
    """The columns that say whose a row is.

    Without ``scope`` the whole tenant shares the table. ``also_read`` is SQL over ``{row}`` and
    ``{tenant}`` for rows that a scope reads and does not write; ``read_by_whole`` rows are read
    only by who acts for the whole tenant. A row of a ``parent`` (column, table) is as visible
    as that. ``lookup`` are SQL expressions over ``{row}`` for the names by which a row may be
    read before it is known whose it is.
    """

    tenant: str = "tenant_id"
    scope: str | None = None
    also_read: str = ""
    parent: tuple[str, str] | None = None
    lookup: tuple[str, ...] = ()
    append_only: bool = False
    read_by_whole: bool = False

    def policies(self, table: str) -> list[str]:
        """The statements that raise the wall of ``table``."""
        reads = self._reads(table)
        writes = self._writes(table)
        made = [
            _policy(table, "application_reads", f"FOR SELECT USING ({reads})"),
            _policy(table, "application_inserts", f"FOR INSERT WITH CHECK ({writes})"),
            _policy(table, "administration", f"TO {ADMINISTRATION} USING (true) WITH CHECK (true)"),
        ]
        if not self.append_only:
            change = f"FOR UPDATE USING ({writes}) WITH CHECK ({writes})"
            made += [
                _policy(table, "application_updates", change),
                _policy(table, "application_deletes", f"FOR DELETE USING ({writes})"),
            ]
        if self.lookup:
            named = " OR ".join(each.format(row=table, lookup=_LOOKUP) for each in self.lookup)
            made.append(_policy(table, "look_up", f"FOR SELECT USING ({named})"))
        return [
            *made,
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        ]

    def _writes(self, table: str) -> str:
        if self.parent is not None:
            column, parent = self.parent
            return f"EXISTS (SELECT FROM {parent} p WHERE p.id = {table}.{column})"
        tenant = f"{table}.{self.tenant} = {_TENANT}"
        if self.scope is None:
            return tenant
        return f"{tenant} AND ({_WHOLE} OR {table}.{self.scope} = {_SCOPE})"

    def _reads(self, table: str) -> str:
        if self.read_by_whole:
            return f"{table}.{self.tenant} = {_TENANT} AND {_WHOLE}"
        if self.parent is not None or self.scope is None or not self.also_read:
            return self._writes(table)
        also = self.also_read.format(row=table, tenant=_TENANT)
        return (
            f"{table}.{self.tenant} = {_TENANT}"
            f" AND ({_WHOLE} OR {table}.{self.scope} = {_SCOPE} OR {also})"
        )


def _policy(table: str, name: str, rule: str) -> str:
    return f"CREATE POLICY {name} ON {table} {rule}"
