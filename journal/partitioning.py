"""Hash partitions as a migration operation. Django's ORM needs to know nothing of them."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Model
from django.db.models.options import Options


class PartitionByHash(Operation):
    """Partition a model's table by hash of one column, all partitions at once.

    Stands right after its CreateModel, in the same migration: Django makes the indexes when
    the migration ends, so they land on the partitioned table and on every partition. The
    primary key becomes ``(id, column)``, since PostgreSQL wants the partition key in it; the
    model's stays ``id``. Rows already there are carried along, in both directions.
    """

    reversible = True

    def __init__(self, model_name: str, *, column: str, partitions: int) -> None:
        self.model_name = model_name
        self.column = column
        self.partitions = partitions

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        options = {"column": self.column, "partitions": self.partitions}
        return self.__class__.__qualname__, [self.model_name], options

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change nothing: the model looks the same."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002 - Django passes it
        to_state: ProjectState,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            _rebuild(schema_editor, model, key=self.column, partitions=self.partitions)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002 - Django passes it
        to_state: ProjectState,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            _rebuild(schema_editor, model, key=None, partitions=0)
            for index in _options(model).indexes:
                schema_editor.add_index(model, index)

    def describe(self) -> str:
        return f"Partition {self.model_name} by hash of {self.column} into {self.partitions}"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name.lower()}_partitioned"


def _options(model: type[Model]) -> "Options[Any]":
    return model._meta  # noqa: SLF001 - documented by Django


def _rebuild(
    schema_editor: BaseDatabaseSchemaEditor, model: type[Model], *, key: str | None, partitions: int
) -> None:
    """Put a table with or without partitions in the place of ``model``'s, rows included."""
    name = _options(model).db_table
    quote = schema_editor.quote_name
    table, former = quote(name), quote(f"{name}_former")
    columns = [quote(str(_options(model).pk.column))]
    partitioned = ""
    if key is not None:
        columns.append(quote(key))
        partitioned = f" PARTITION BY HASH ({quote(key)})"
    execute = schema_editor.execute
    execute(f"ALTER TABLE {table} RENAME TO {former}")
    execute(f"CREATE TABLE {table} (LIKE {former} INCLUDING ALL EXCLUDING INDEXES){partitioned}")
    for number in range(partitions):
        execute(
            f"CREATE TABLE {quote(f'{name}_p{number:02}')} PARTITION OF {table}"
            f" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
        )
    execute(f"INSERT INTO {table} SELECT * FROM {former}")  # noqa: S608 - quoted names, no values
    execute(f"DROP TABLE {former}")
    execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(columns)})")
