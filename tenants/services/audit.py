"""The audit log: written in the transaction of the change that it tells of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Model

from tenants.context import AllTenants, Reach, current
from tenants.models import AuditEntry

CHANGED = "changed"
"""What is written in the place of a secret."""

Changes = Mapping[str, Any]


def note(action: str, subject: Model, *, tenant_id: UUID, changes: Changes | None = None) -> None:
    """Append that the running code's actor did ``action`` to ``subject``."""
    AuditEntry.objects.create(
        tenant_id=tenant_id,
        actor=acting(),
        action=action,
        object_id=subject.pk,
        object_name=str(subject)[:300],
        changes={name: _plain(value) for name, value in (changes or {}).items()},
    )


def acting() -> str:
    """Who the running code works for."""
    where = current()
    if isinstance(where, Reach):
        return where.actor or "the application"
    return where.reason[:300] if isinstance(where, AllTenants) else "nobody"


def values_of(row: Model, fields: Iterable[str]) -> dict[str, Any]:
    """The present values, to compare later."""
    return {name: getattr(row, name) for name in fields}


def difference(before: Changes, row: Model) -> dict[str, list[Any]]:
    """What changed since, as ``field: [old, new]``."""
    return {
        name: [_plain(old), _plain(getattr(row, name))]
        for name, old in before.items()
        if old != getattr(row, name)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
