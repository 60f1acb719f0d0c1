"""System checks: `manage.py check --database default`, and before every `migrate`."""

from collections.abc import Callable, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DataError, ProgrammingError

from tenants.startup import Fault, encryption_key_faults, wall_faults


@register(Tags.database)
def encryption_keys_fit(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """BROKER_ENCRYPTION_KEYS holds the keys that the database was written with."""
    return _faults(encryption_key_faults, databases)


@register(Tags.database)
def walls_stand(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """The database holds the application within its tenant."""
    return _faults(wall_faults, databases)


def _faults(look: Callable[[], list[Fault]], databases: Sequence[str] | None) -> list[CheckMessage]:
    if not databases:
        return []
    try:
        faults = look()
    except (DataError, ProgrammingError):  # not migrated yet: no table, or no role
        return []
    return [Error(fault.message, hint=fault.hint, id=fault.id) for fault in faults]
