"""What a transaction is told: the role, the tenant, the scope, the look-up."""

from __future__ import annotations

from functools import lru_cache

from psycopg.sql import SQL, Literal

from tenants.context import (
    ADMINISTRATION,
    WHOLE_TENANT,
    AllTenants,
    Lookup,
    Reach,
    Where,
)


@lru_cache(maxsize=4096)
def stamp(where: Where | None, resting_role: str) -> str:
    """The statement that stamps the open transaction, and nothing beyond it.

    PostgreSQL takes a wall's conditions for independent of a query's own, so that it expects one
    row where there are a hundred thousand: it would fetch and sort all of them rather than read
    the newest fifty in an index's order. Within walls it sorts only what has no index, and makes
    no machine code for it, which it would for the cost that it is told a sort has.
    """
    tenant, scope, lookup, sorts = "", "", "", "on"
    role = resting_role
    if isinstance(where, Reach):
        tenant, sorts = str(where.tenant_id), "off"
        scope = WHOLE_TENANT if where.scope_id is None else str(where.scope_id)
    elif isinstance(where, Lookup):
        lookup = where.name
    elif isinstance(where, AllTenants):
        role = ADMINISTRATION
    settings = SQL(
        "SELECT set_config('app.tenant_id', {}, true), set_config('app.scope_id', {}, true),"
        " set_config('app.lookup', {}, true), set_config('role', {}, true),"
        " set_config('enable_sort', {}, true), set_config('jit', {}, true)"
    )
    values = map(Literal, (tenant, scope, lookup, role, sorts, sorts))
    return settings.format(*values).as_string(None)
