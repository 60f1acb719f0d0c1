"""What must be right before a process serves: encryption keys and the database's walls."""

import hmac
from dataclasses import dataclass

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import Exists, OuterRef

from tenants import vault
from tenants.context import ADMINISTRATION, APPLICATION, all_tenants, scope_active
from tenants.models import DataKey, EncryptionKey


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, and what to do."""

    id: str
    message: str
    hint: str


def encryption_key_faults() -> list[Fault]:
    """What is wrong with BROKER_ENCRYPTION_KEYS for this database."""
    keyring = vault.keyring()
    in_use = Exists(DataKey.objects.filter(kek_id=OuterRef("kek_id")))
    with all_tenants("the encryption keys are checked", routine=True):
        stored = list(EncryptionKey.objects.annotate(in_use=in_use).order_by("kek_id"))
    faults = []
    for known in stored:
        if known.kek_id in keyring.ids:
            value = keyring.check_value(known.kek_id)
            if not hmac.compare_digest(value, bytes(known.check_value)):
                faults.append(_wrong(known.kek_id))
        elif known.in_use and known.abandoned_at is None:
            faults.append(_missing(known.kek_id))
    return faults


_PASSES = """
SELECT rolsuper OR rolbypassrls OR pg_has_role(current_user, admin.oid, 'USAGE')
FROM pg_roles me LEFT JOIN LATERAL (SELECT oid FROM pg_roles WHERE rolname = %s) admin ON true
WHERE me.rolname = current_user
"""
_ROLE_IS_MADE = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)"
_UNFORCED = """
SELECT relname FROM pg_class WHERE relname = ANY(%s)
AND relnamespace = current_schema()::regnamespace AND NOT (relrowsecurity AND relforcerowsecurity)
"""
_OPEN_PARTITIONS = """
SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'
AND relnamespace = current_schema()::regnamespace
AND has_table_privilege(current_user, oid, 'SELECT')
"""


def role_is_made() -> bool:
    """Whether the server has the application's role, as it has after the first migration."""
    with scope_active(None), connection.cursor() as cursor:
        cursor.execute(_ROLE_IS_MADE, [settings.DATABASE_ROLE or APPLICATION])
        return bool(cursor.fetchone()[0])


def wall_faults() -> list[Fault]:
    """Where the database would let the application past its walls."""
    walled = [
        model._meta.db_table  # noqa: SLF001 - documented by Django
        for model in apps.get_models()
        if hasattr(model, "wall")
    ]
    with scope_active(None), connection.cursor() as cursor:
        cursor.execute(_PASSES, [ADMINISTRATION])
        passes = cursor.fetchone()[0] is not False
        cursor.execute(_UNFORCED, [walled])
        unforced = sorted(name for (name,) in cursor.fetchall())
        cursor.execute(_OPEN_PARTITIONS)
        readable = sorted(name for (name,) in cursor.fetchall())
    faults = []
    if passes:
        faults.append(_role_passes())
    if unforced:
        faults.append(
            Fault(
                "tenants.E004",
                f"Row-level security is not forced on {', '.join(unforced)}.",
                "Run 'manage.py migrate'; a new table needs raise_walls(…) in its migration.",
            )
        )
    if readable and not passes:
        faults.append(
            Fault(
                "tenants.E005",
                f"The application may read partitions directly: {', '.join(readable)}.",
                "Run 'manage.py migrate', which takes that right away.",
            )
        )
    return faults


def _role_passes() -> Fault:
    return Fault(
        "tenants.E003",
        "The database role of the application passes row-level security.",
        f"Leave DATABASE_ROLE at {APPLICATION}, let 'manage.py migrate' make the roles, and see"
        " docs/security.md for a login role that is neither superuser nor a member that inherits"
        f" {ADMINISTRATION}.",
    )


def require_safe_start() -> None:
    """For the start of a process: ImproperlyConfigured unless keys and walls are right."""
    faults = encryption_key_faults() + wall_faults()
    if faults:
        raise ImproperlyConfigured(
            "\n".join(f"{fault.message}\n  {fault.hint}" for fault in faults)
        )


def _wrong(kek_id: str) -> Fault:
    return Fault(
        "tenants.E001",
        f"BROKER_ENCRYPTION_KEYS: the key {kek_id!r} is not the one that encrypted this database.",
        "Put the former key back under that id, and give a new key an id of its own.",
    )


def _missing(kek_id: str) -> Fault:
    return Fault(
        "tenants.E002",
        f"BROKER_ENCRYPTION_KEYS lacks the key {kek_id!r}, and secrets are encrypted under it.",
        "Put it back (after the active one). If it is lost for good, run 'manage.py"
        f" rotate_encryption_keys --abandon {kek_id}' and enter those provider keys again.",
    )
