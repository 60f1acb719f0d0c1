"""System checks: `manage.py check --database default`, and before every `migrate`."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import ProgrammingError

from tenants.startup import encryption_key_faults


@register(Tags.database)
def encryption_keys_fit(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """BROKER_ENCRYPTION_KEYS holds the keys that the database was written with."""
    if not databases:
        return []
    try:
        faults = encryption_key_faults()
    except ProgrammingError:  # not migrated yet
        return []
    return [Error(fault.message, hint=fault.hint, id=fault.id) for fault in faults]
