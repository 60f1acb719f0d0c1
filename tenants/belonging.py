"""Every table that holds what is a tenant's, of whichever app, as the models' walls describe it."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model
from psycopg.sql import SQL, Composed, Identifier

from tenants.walls import Wall


def walled_models() -> list[type[Model]]:
    """The models that stand behind a wall."""
    return [model for model in apps.get_models() if isinstance(getattr(model, "wall", None), Wall)]


def referring_first() -> list[type[Model]]:
    """The same, each before those that its foreign keys name: the order in which rows may go."""
    walled = walled_models()

    def depth(model: type[Model]) -> int:
        named = [field.related_model for field in model._meta.concrete_fields]  # noqa: SLF001
        return 1 + max(
            (depth(each) for each in named if each in walled and each is not model), default=0
        )

    return sorted(walled, key=depth, reverse=True)


def table_of(model: type[Model]) -> str:
    """The model's table."""
    return model._meta.db_table  # noqa: SLF001 - documented by Django


def of_tenant(model: type[Model]) -> Composed:
    """``WHERE`` for the rows of the tenant that is the one parameter."""
    wall: Wall = model.wall  # type: ignore[attr-defined]
    if wall.parent is None:
        return SQL("{} = %s").format(Identifier(wall.tenant))
    column, parent = wall.parent
    return SQL("{} IN (SELECT id FROM {} WHERE tenant_id = %s)").format(
        Identifier(column), Identifier(parent)
    )
