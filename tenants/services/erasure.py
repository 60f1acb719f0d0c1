"""Erasing a tenant: first its data keys, so that no backup can be read; then every row.

An app that knows better how its own rows go (``register_eraser``) goes first. Then tables are
found by their walls, so a table that a new app adds is erased without being named: they are
emptied in batches, each a transaction of its own, those that refer to others first.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol
from uuid import UUID

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone
from psycopg.sql import SQL, Identifier, Literal

from tenants.belonging import of_tenant, referring_first, table_of, walled_models
from tenants.models import AccessToken, DataKey, Scope, Tenant

BATCH = 5000

log = logging.getLogger("tenants.walls")


class Eraser(Protocol):
    """Removes what an app holds of a tenant, in short transactions; how many rows went."""

    def __call__(self, *, tenant_id: UUID) -> int: ...


_erasers: list[Eraser] = []


def register_eraser(eraser: Eraser) -> None:
    """Have an app erase its own tables; for its ``AppConfig.ready``."""
    if eraser not in _erasers:
        _erasers.append(eraser)


def count_rows(*, tenant: Tenant) -> dict[str, int]:
    """How many rows of each table are the tenant's: what an erasure would remove."""
    with connection.cursor() as cursor:
        return {table_of(model): _count(cursor, model, tenant) for model in walled_models()}


def erase_tenant(*, tenant: Tenant) -> dict[str, int]:
    """Remove everything of a tenant, and the people who belonged to nothing else. How many rows.

    Interrupted, it is simply started again.
    """
    log.warning("erasing tenant %s (%s)", tenant.slug, tenant.pk)
    counted = count_rows(tenant=tenant)
    _destroy_keys(tenant)
    people = _only_here(tenant)
    for model in walled_models():
        _forget_admin_log(model, tenant)
    for erase in _erasers:
        erase(tenant_id=tenant.pk)
    for model in referring_first():
        _empty(model, tenant)
    _forget_people(people)
    return counted


@transaction.atomic
def _destroy_keys(tenant: Tenant) -> None:
    """From here on nothing sealed opens, and no token is taken."""
    DataKey.objects.filter(tenant=tenant).update(wrapped=b"", kek_id="erased")
    AccessToken.objects.filter(tenant=tenant, revoked_at=None).update(revoked_at=timezone.now())


def _only_here(tenant: Tenant) -> list[int]:
    """Members of this tenant alone, its own staff among them; the operators stay."""
    elsewhere = Scope.objects.exclude(tenant=tenant).exclude(user=None)
    here = Scope.objects.filter(tenant=tenant).exclude(user=None)
    people = User.objects.filter(pk__in=here.values("user"), is_superuser=False)
    return list(people.exclude(pk__in=elsewhere.values("user")).values_list("pk", flat=True))


@transaction.atomic
def _forget_people(people: list[int]) -> None:
    """And that they signed in, or tried to, and what operators did with them."""
    users = User.objects.filter(pk__in=people)
    names = list(users.values_list("username", flat=True))
    for log_of_logins in (AccessAttempt, AccessFailureLog, AccessLog):
        log_of_logins.objects.filter(username__in=names).delete()
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.filter(content_type=kind, object_id__in=map(str, people)).delete()
    users.delete()


def _empty(model: type[Model], tenant: Tenant) -> None:
    table, where = Identifier(table_of(model)), of_tenant(model)
    batch = SQL("DELETE FROM {} WHERE id IN (SELECT id FROM {} WHERE {} LIMIT {}) AND {}").format(
        table, table, where, Literal(BATCH), where
    )
    deleted = BATCH
    while deleted == BATCH:
        with transaction.atomic(), connection.cursor() as cursor:
            # The triggers of append-only tables let this tenant's rows go.
            cursor.execute("SELECT set_config('app.erased_tenant', %s, true)", [str(tenant.pk)])
            cursor.execute(batch, [tenant.pk, tenant.pk])
            deleted = cursor.rowcount


def _forget_admin_log(model: type[Model], tenant: Tenant) -> None:
    """The admin site's own log repeats names of rows."""
    kind = ContentType.objects.get_for_model(model)
    statement = SQL(
        "DELETE FROM django_admin_log WHERE content_type_id = %s"
        " AND object_id IN (SELECT id::text FROM {} WHERE {})"
    ).format(Identifier(table_of(model)), of_tenant(model))
    with connection.cursor() as cursor:
        cursor.execute(statement, [kind.pk, tenant.pk])


def _count(cursor: Any, model: type[Model], tenant: Tenant) -> int:
    statement = SQL("SELECT count(*) FROM {} WHERE {}")
    cursor.execute(statement.format(Identifier(table_of(model)), of_tenant(model)), [tenant.pk])
    found: int = cursor.fetchone()[0]
    return found
