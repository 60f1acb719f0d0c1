"""The first wall: a query of a tenant's table is bounded when its SQL is made, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import BooleanField, Expression, F, Manager, Model, QuerySet

from tenants.context import AllTenants, required
from tenants.walls import Wall

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

M = TypeVar("M", bound=Model)


class InReach(Expression):
    """Whether a row lies within the active scope. Which one that is, the running query tells:
    a queryset may be made long before, or at import time."""

    conditional = True

    def __init__(self, wall: Wall) -> None:
        super().__init__(output_field=BooleanField())
        self.wall = wall
        names = [] if wall.parent is not None else [wall.tenant]
        self.columns: list[Any] = [F(name) for name in (*names, wall.scope) if name is not None]

    def get_source_expressions(self) -> list[Any]:
        """The columns, for Django to resolve."""
        return self.columns

    def set_source_expressions(self, exprs: Any) -> None:
        """The columns, as Django resolved them."""
        self.columns = list(exprs)

    def as_sql(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,  # noqa: ARG002 - Django's signature
    ) -> tuple[str, tuple[Any, ...]]:
        """The condition now. Raises ScopeRequired outside of any scope."""
        where = required()
        if isinstance(where, AllTenants) or not self.columns:
            return "TRUE", ()
        if self.wall.read_by_whole and where.scope_id is not None:
            return "FALSE", ()
        tenant, _ = compiler.compile(self.columns[0])
        if len(self.columns) == 1 or where.scope_id is None:
            return f"{tenant} = %s", (where.tenant_id,)
        scope, _ = compiler.compile(self.columns[1])
        sql, params = f"{tenant} = %s AND ({scope} = %s", (where.tenant_id, where.scope_id)
        if not self.wall.also_read:
            return f"({sql}))", params
        row = compiler.quote_name_unless_alias(self.columns[0].alias)
        also = self.wall.also_read.format(row=row, tenant="%s")
        return f"({sql} OR {also}))", params + (where.tenant_id,) * also.count("%s")


class ScopedManager(Manager[M]):
    """The rows of the active scope. Its model says by ``wall`` which those are."""

    def get_queryset(self) -> QuerySet[M]:
        """Bounded when run."""
        return super().get_queryset().filter(InReach(self.model.wall))  # type: ignore[attr-defined]
