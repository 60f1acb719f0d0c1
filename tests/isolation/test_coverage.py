"""What the walls must cover, walked: a model, route, task or page that is not fails here."""

from io import StringIO

import pytest
from celery import current_app
from django.contrib import admin
from django.core import checks
from django.core.management import call_command, get_commands
from django.db import connection
from django.db.models import Manager

from tenants.context import APPLICATION, scope_active
from tenants.managers import ScopedManager
from tenants.permissions import ALL, ANY
from tenants.walls import Wall
from tests.isolation.test_walk import API, REGISTERED
from tests.support.belongings import OUR_APPS, tenant_models

pytestmark = pytest.mark.django_db

# How each task of ours comes by its reach. A new one is added here by whoever has thought of it.
TASKS = {
    "agents.advance_runs": "wakes the worker, which takes runs of all tenants by their ids and"
    " works on each within its scope",
    "agents.fire_schedules": "all tenants: finds what is due, and works within each one's scope",
    "agents.retention": "all tenants: deletes what each does not keep",
    "agents.deliver_webhooks": "all tenants: sends what each one's endpoints are due",
    "journal.add_up": "all tenants: adds up every scope's calls",
    "journal.retention": "all tenants: deletes what each does not keep",
    "tenants.forget_idempotency_keys": "all tenants: deletes what has expired",
    "agents.reap_runs": "all tenants: ends runs that expire, starts held ones, and rings",
}

# Every command of ours, run outside of all scopes as an operator does.
COMMANDS = {
    "create_tenant": ["initech", "--owner", "peter@initech.example"],
    "doctor": [],
    "erase_tenant": ["acme"],
    "export_tenant": ["acme", "--to", "EXPORT"],
    "journal_retention": [],
    "journal_sweep": [],
    "migrate": ["--check"],
    "rotate_encryption_keys": [],
}

# Commands that need more than a database, and where they are run outside of all scopes.
COMMANDS_ELSEWHERE = {"run_agent": "tests/agents/test_run_agent.py"}


@pytest.mark.parametrize("model", tenant_models(), ids=lambda model: model._meta.label)
def test_every_model_of_a_tenant_stands_behind_both_walls(model):
    assert isinstance(getattr(model, "wall", None), Wall), "say whose its rows are: wall = Wall(…)"
    assert type(model._default_manager) is ScopedManager
    others = [m for m in model._meta.managers if m.name not in ("objects", "unscoped")]
    assert not others
    assert type(model._base_manager) is Manager
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass",
            [model._meta.db_table],
        )
        assert cursor.fetchone() == (True, True), "raise_walls(…) in a migration"
        cursor.execute(
            "SELECT policyname FROM pg_policies WHERE tablename = %s", [model._meta.db_table]
        )
        policies = {name for (name,) in cursor.fetchall()}
    assert {"application_reads", "application_inserts", "administration"} <= policies
    assert ("look_up" in policies) == bool(model.wall.lookup)


def test_the_policies_in_the_database_are_those_that_the_models_describe():
    with connection.cursor() as cursor:
        for model in tenant_models():
            table = model._meta.db_table
            policies = _policies(cursor, table)
            cursor.execute(f"CREATE TEMP TABLE t_{table} (LIKE {table})")
            for statement in model.wall.policies(f"t_{table}"):
                cursor.execute(statement)
            assert _policies(cursor, f"t_{table}") == policies, table


def _policies(cursor, table):
    cursor.execute(
        "SELECT policyname, cmd, roles::text, qual, with_check FROM pg_policies"
        " WHERE tablename = %s ORDER BY policyname",
        [table],
    )
    return [
        tuple(text and text.replace(f"{table}.", "row.") for text in row)
        for row in cursor.fetchall()
    ]


@pytest.mark.parametrize(("path", "entry"), API, ids=[path for path, _ in API])
def test_every_route_says_what_it_needs(path, entry):
    view = entry.callback.view_class
    handlers = {verb.upper() for verb in view.http_method_names if hasattr(view, verb)} - {
        "OPTIONS",
        "HEAD",
    }
    needed = getattr(view, "required_permissions", {})
    assert handlers == set(needed)
    assert set(needed.values()) <= ALL | {ANY}


def test_every_task_says_how_it_comes_by_its_reach():
    current_app.loader.import_default_modules()
    ours = {name for name in current_app.tasks if name.split(".")[0] in OUR_APPS}
    assert ours == set(TASKS)


def test_every_command_of_ours_is_tried():
    ours = {name for name, app in get_commands().items() if app in (*OUR_APPS, "broker_project")}
    assert ours == set(COMMANDS) | set(COMMANDS_ELSEWHERE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_enters_what_it_needs_by_itself(name, alice, charlie, tmp_path):
    arguments = [str(tmp_path) if each == "EXPORT" else each for each in COMMANDS[name]]
    with scope_active(None):
        call_command(name, *arguments, stdout=StringIO())


def test_every_admin_page_of_ours_is_walked():
    ours = {model for model in admin.site._registry if model._meta.app_label in OUR_APPS}
    assert ours == set(REGISTERED)


def test_the_application_has_no_rights_on_partitions_and_cannot_truncate():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'"
            " AND has_table_privilege(%s, oid, 'SELECT')",
            [APPLICATION],
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND relnamespace = 'public'::regnamespace"
            " AND has_table_privilege(%s, oid, 'TRUNCATE')",
            [APPLICATION],
        )
        assert cursor.fetchall() == []


def test_the_system_checks_find_the_walls_standing():
    assert [
        m for m in checks.run_checks(databases=["default"]) if m.id.startswith("tenants.")
    ] == []
