"""System checks: `manage.py check --database default`, and before every `migrate`."""

from collections.abc import Callable, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DataError, ProgrammingError

from tenants.startup import Fault, encryption_key_faults, role_is_made, wall_faults


@register(Tags.database)
def encryption_keys_fit(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """BROKER_ENCRYPTION_KEYS holds the keys that the database was written with."""
    return _faults(encryption_key_faults, databases)


@register(Tags.database)
def walls_stand(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """The database holds the application within its tenant.

    Says nothing before the first migration, which this check precedes and which makes the role;
    a process that serves refuses to start without it.
    """
    return _faults(lambda: wall_faults() if role_is_made() else [], databases)


def _faults(look: Callable[[], list[Fault]], databases: Sequence[str] | None) -> list[CheckMessage]:
    if not databases:
        return []
    try:
        faults = look()
    except (DataError, ProgrammingError):  # not migrated yet: no table
        return []
    return [Error(fault.message, hint=fault.hint, id=fault.id) for fault in faults]
