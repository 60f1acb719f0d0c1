"""What an installation needs to work, each with what to do where it is missing."""

from collections.abc import Iterator
from dataclasses import dataclass

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tenants import vault
from tenants.context import all_tenants
from tenants.models import DataKey, ProviderKey, Tenant
from tenants.startup import encryption_key_faults


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    subject: str
    detail: str
    remedy: str = ""
    """Empty where all is well."""

    @property
    def ok(self) -> bool:
        """Whether nothing needs doing."""
        return not self.remedy


def findings() -> Iterator[Finding]:
    """Look at everything, in the order in which things depend on each other."""
    yield _redis()
    database = _database()
    yield database
    if not database.ok:
        return
    migrations = _migrations()
    yield migrations
    if not migrations.ok:
        return
    for look in (_encryption_keys, _rotation, _stored_keys, _tenants):
        with all_tenants("doctor"):
            finding = look()
        yield finding


def _database() -> Finding:
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        return Finding("database", str(error).strip(), "Start it, or correct DATABASE_URL.")
    version = connection.get_database_version()[0]
    if version < 15:
        return Finding("database", f"PostgreSQL {version}", "Use PostgreSQL 15 or newer.")
    return Finding("database", f"PostgreSQL {version}")


def _redis() -> Finding:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=3) as client:
            client.ping()
    except redis.RedisError as error:
        return Finding("redis", str(error), "Start Redis or Valkey, or correct REDIS_URL.")
    return Finding("redis", "answers")


def _migrations() -> Finding:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        return Finding("migrations", f"{len(pending)} pending", "Run `manage.py migrate`.")
    return Finding("migrations", "all applied")


def _encryption_keys() -> Finding:
    faults = encryption_key_faults()
    if faults:
        return Finding("encryption keys", faults[0].message, faults[0].hint)
    return Finding("encryption keys", f"active: {vault.keyring().active}")


def _rotation() -> Finding:
    former = vault.keyring().ids - {vault.keyring().active}
    old = DataKey.objects.filter(kek_id__in=former).count()
    if old:
        return Finding(
            "rotation",
            f"{old} data keys under a former key",
            "Run `manage.py rotate_encryption_keys`.",
        )
    return Finding("rotation", "every data key is under the active key")


def _stored_keys() -> Finding:
    keys = ProviderKey.objects.select_related("data_key", "tenant")
    broken = [key for key in keys.iterator() if not vault.is_readable(key)]
    if broken:
        first = f"{broken[0].tenant.slug} {broken[0].ref}"
        return Finding(
            "provider keys",
            f"{len(broken)} cannot be opened, {first} first",
            "Enter them again: the admin marks them 'needs re-entry'.",
        )
    return Finding("provider keys", "all can be opened")


def _tenants() -> Finding:
    if not Tenant.objects.exists():
        return Finding(
            "tenants",
            "there is none",
            "Run `manage.py create_tenant SLUG --owner EMAIL`.",
        )
    return Finding("tenants", "there are some")
