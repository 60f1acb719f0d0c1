"""A tenant leaves, with or without its belongings."""

import json
from io import StringIO
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from journal.models import EVERYBODY
from tenants.context import scope_active
from tenants.models import DataKey, Tenant
from tenants.services.erasure import BATCH
from tenants.services.people import add_member
from tests.support.belongings import belongings_of, snapshot, tenant_models

pytestmark = pytest.mark.django_db(transaction=True)
SEALED = ("sealed", "wrapped", "digest", "fingerprint")


@pytest.fixture
def both(alice, charlie):
    return belongings_of(alice), belongings_of(charlie)


def command(name, *arguments):
    out = StringIO()
    with scope_active(None):
        call_command(name, *arguments, stdout=out)
    return out.getvalue()


def traces_of(ids):
    """Every column of every table of the database that names one of these."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t")  # noqa: S608
            text = " ".join(row for (row,) in cursor.fetchall())
            found += [(table, each) for each in ids if each in text]
    return found


def test_a_dry_run_counts_and_removes_nothing(both):
    before = snapshot()
    told = command("erase_tenant", "acme")
    assert "Nothing was removed" in told
    for model in tenant_models():
        assert model._meta.db_table in told
    assert snapshot() == before


def test_an_erased_tenant_leaves_no_trace_and_its_neighbour_everything(both, admin_client):
    acmes, globexes = both
    page = f"/admin/tenants/scope/{acmes.person.scope.pk}/change/"
    admin_client.post(page, {"key_policy": "own_only"})  # the admin site's log names it
    alice = _staff_who_signed_in(acmes.person.user, admin_client)
    theirs = acmes.all_ids() | {"acme", alice.username}
    kept = {
        table: [row for row in rows if not theirs & set(map(str, row.values()))]
        for table, rows in snapshot(but=("agents_step", "agents_event")).items()
    }
    assert traces_of(theirs)
    assert "Erased acme" in command("erase_tenant", "acme", "--confirm", "acme")
    assert traces_of(theirs) == []
    assert not User.objects.filter(username="alice").exists()
    after = snapshot(but=("agents_step", "agents_event"))
    (totals,) = (row for row in after["journal_dailyfigures"] if not _is_of(globexes, row))
    assert UUID(totals["tenant_id"]) == EVERYBODY  # counts, of nobody
    after["journal_dailyfigures"].remove(totals)
    assert {t: len(rows) for t, rows in after.items()} == {
        t: len([r for r in rows if _is_of(globexes, r)]) for t, rows in kept.items()
    }
    assert command("erase_tenant", "globex").count("         1  tenants_tenant") == 1


def _staff_who_signed_in(user, operator):
    """Of the tenant's own staff: an operator gave a password, and it was mistyped once."""
    user.is_staff = True
    user.set_password("correct horse battery")
    user.save()
    operator.post(f"/admin/auth/user/{user.pk}/password/", {"usable_password": "false"})
    browser = Client(REMOTE_ADDR="203.0.113.9")
    for password in ("mistyped", "correct horse battery"):
        browser.post("/admin/login/", {"username": user.username, "password": password})
    Client(REMOTE_ADDR="203.0.113.10").post(
        "/admin/login/", {"username": user.username, "password": "guessed"}
    )
    return user


def _is_of(belongings, row):
    return bool(belongings.all_ids() & set(map(str, row.values())))


def test_a_person_of_two_tenants_stays(both, charlie):
    add_member(tenant=both[0].person.tenant, user=charlie.user, role="member")
    command("erase_tenant", "acme", "--confirm", "acme")
    assert User.objects.filter(pk=charlie.user.pk).exists()
    assert Tenant.objects.get().slug == "globex"


def test_large_tables_go_in_batches(both, monkeypatch):
    monkeypatch.setattr("tenants.services.erasure.BATCH", 1)
    command("erase_tenant", "acme", "--confirm", "acme")
    assert traces_of(both[0].all_ids()) == []
    assert BATCH > 1


def test_an_erasure_needs_the_slug_twice(both):
    with pytest.raises(CommandError, match="--confirm"):
        command("erase_tenant", "acme", "--confirm", "globex")
    assert Tenant.objects.count() == 2
    assert DataKey.objects.exclude(wrapped=b"").count() == 2


def test_an_export_holds_what_belongs_to_the_tenant_and_no_secret(both, tmp_path):
    acmes, globexes = both
    command("export_tenant", "acme", "--to", str(tmp_path))
    rows = {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in tmp_path.iterdir()
    }
    assert set(rows) == {model._meta.db_table for model in tenant_models()}
    assert all(rows.values())
    everything = json.dumps(rows)
    assert not [pk for pk in globexes.all_ids() if pk in everything]
    for found in rows.values():
        assert not [name for row in found for name in row if name in SEALED]
    assert str(acmes.ids["call_id"][0]) in everything
