"""Exporting a tenant: one file of JSON lines per table, and no secret in any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.models import BinaryField, Model
from psycopg.sql import SQL, Identifier

from tenants.belonging import of_tenant, table_of, walled_models
from tenants.models import Tenant

BATCH = 1000


def export_tenant(*, tenant: Tenant, folder: Path) -> dict[str, int]:
    """Write what belongs to the tenant; how many rows of each table.

    Keys, digests and everything else that is bytes stays out: it is sealed or a fingerprint.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {table_of(model): _write(model, tenant, folder) for model in walled_models()}


def _write(model: type[Model], tenant: Tenant, folder: Path) -> int:
    count = 0
    with (folder / f"{table_of(model)}.jsonl").open("w", encoding="utf-8") as file:
        for count, row in enumerate(_rows(model, tenant), start=1):  # noqa: B007
            file.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")
    return count


def _rows(model: type[Model], tenant: Tenant) -> Iterator[dict[str, Any]]:
    sealed = [
        field.column
        for field in model._meta.concrete_fields  # noqa: SLF001 - documented by Django
        if isinstance(field, BinaryField)
    ]
    statement = SQL("SELECT to_jsonb(t) - %s::text[] FROM {} t WHERE {} ORDER BY id")
    query = statement.format(Identifier(table_of(model)), of_tenant(model))
    with connection.chunked_cursor() as cursor:
        cursor.execute(query, [sealed, tenant.pk])
        while rows := cursor.fetchmany(BATCH):
            for (row,) in rows:
                yield json.loads(row) if isinstance(row, str) else row
