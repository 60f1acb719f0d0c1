"""Every route, verb and admin page, as globex's owner with acme's ids.

The requests run as the application's role of PostgreSQL. The walk is made twice: as the code is,
and with a manager that forgets every filter by tenant or scope, where the database stands alone.
A last test takes both walls down and sees the walk fail, so that it is known to bite.
"""

import itertools
import re

import pytest
from django.conf import settings
from django.contrib import admin
from django.db import connection
from django.db.models import Q, QuerySet
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.context import APPLICATION
from tenants.managers import InReach, ScopedManager
from tests.support.belongings import snapshot, tenant_models

NAMES_A_SCOPE = {"tenant", "tenant_id", "scope", "scope_id", "scope__kind", "run__scope"}
PUBLIC = {"api-schema", "api-docs"}
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
WRITING = ("post", "put", "patch")
VERBS = ("get", *WRITING, "delete")


def routes(resolver=None, prefix="/"):
    for entry in (resolver or get_resolver()).url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            if entry.app_name != "admin":
                yield from routes(entry, path)
        elif isinstance(entry, URLPattern) and entry.name not in PUBLIC:
            yield path, entry


API = [(path, entry) for path, entry in routes() if path.startswith("/api/")]


class ForgetfulQuerySet(QuerySet):
    """Drops every condition that names a tenant or a scope: what a bug could do at worst."""

    def _filter_or_exclude_inplace(self, negate, args, kwargs):
        kwargs = {name: value for name, value in kwargs.items() if name not in NAMES_A_SCOPE}
        args = [kept for each in args if (kept := without_scopes(each)) is not None]
        super()._filter_or_exclude_inplace(negate, args, kwargs)


def without_scopes(condition):
    if isinstance(condition, InReach):
        return None
    if not isinstance(condition, Q):
        return condition
    children = [
        child
        for child in condition.children
        if not (isinstance(child, tuple) and child[0] in NAMES_A_SCOPE)
    ]
    kept = [without_scopes(child) if isinstance(child, Q) else child for child in children]
    return Q(*[child for child in kept if child is not None], _connector=condition.connector)


def forget_filters(monkeypatch):
    def get_queryset(self):
        return ForgetfulQuerySet(self.model, using=self._db)

    monkeypatch.setattr(ScopedManager, "get_queryset", get_queryset)


@pytest.fixture(params=["both walls", "the database alone"])
def walls(request, monkeypatch):
    if request.param == "the database alone":
        forget_filters(monkeypatch)


def concrete(path, acmes):
    """The path with acme's ids in it, one for each row that its parameter can name."""
    names = PARAMETER.findall(path)
    rows = itertools.product(*(acmes.ids[name] for name in names))
    return [fill(path, values) for values in rows]


def fill(path, values):
    remaining = iter(values)
    return PARAMETER.sub(lambda _: str(next(remaining)), path)


def bodies(acmes):
    """Bodies that name what is acme's where a body can name something."""
    ids = {name: str(pks[0]) for name, pks in acmes.ids.items()}
    return [
        {"ref": "A_KEY", "value": "x" * 30, "scope": ids["scope_id"]},
        {"name": "t", "permissions": ["runs:read"], "scope": ids["scope_id"]},
        {
            "name": "mine", "base_url": "https://api.example.test/v1", "model": "m",
            "scope": ids["scope_id"],
        },
        {"call_id": ids["call_id"], "score": 1.0},
        {"label": "mine now"}, {"enabled": False}, {"name": "mine now"}, {"role": "viewer"},
        {"name": "usd_per_day", "limit": "9", "scope": ids["scope_id"]},
        {"name": "usd_per_day", "limit": "9", "token": ids["token_id"]},
        {"key_policy": "own_only"},
        {"step": 1}, {"approvals": [{"tool_call_id": "call_1", "decision": "approve"}]},
        {"tool_outputs": [{"tool_call_id": "call_1", "output": "mine"}]},
        {"runs": {"days": 1}}, {"calls": {"metadata_days": 1}},
        {"messages": [{"role": "user", "content": "hi"}], "agent": "theirs-of-acme"},
    ]  # fmt: skip


def of_acme(rows, acmes):
    """What of a snapshot is acme's, by any id in it."""
    mine = acmes.all_ids()
    return {
        table: [row for row in found if mine & set(map(str, row.values()))]
        for table, found in rows.items()
    }


def attack(client, acmes):
    """Every route with every verb that it takes; what comes back that is acme's."""
    theirs = acmes.all_ids()
    for path, entry in API:
        handled = [verb for verb in WRITING if hasattr(entry.callback.view_class, verb)]
        for url in concrete(path, acmes):
            for verb in VERBS:
                for body in bodies(acmes) if verb in handled else [None]:
                    answer = getattr(client, verb)(url, body)
                    if answer.status_code == 405:
                        break
                    if "<" in path and answer.status_code not in (404, 400):
                        yield f"{verb} {path} answered {answer.status_code}"
                    text = answer.getvalue().decode().replace(url.split("/")[-1], "")
                    if any(pk in text for pk in theirs) or "acme" in text:
                        yield f"{verb} {path} shows what is acme's"


def test_the_walk_knows_an_id_for_every_parameter_of_every_route(acmes):
    for path, _ in API:
        assert concrete(path, acmes), path


def test_the_intruder_gets_nothing_over_any_route(api, acmes, globexes, walls):
    before = of_acme(snapshot(), acmes)
    assert list(attack(api(globexes.person.token), acmes)) == []
    assert of_acme(snapshot(), acmes) == before


def test_requests_run_as_the_applications_role(api, charlie, monkeypatch):
    roles = []
    original = QuerySet._fetch_all

    def watched(self):
        if not roles and self.model._meta.label == "tenants.ProviderKey":
            with connection.cursor() as cursor:
                cursor.execute("SELECT current_user")
                roles.append(cursor.fetchone()[0])
        original(self)

    monkeypatch.setattr(QuerySet, "_fetch_all", watched)
    api(charlie.token).get("/api/v1/keys")
    assert roles == [APPLICATION]


def test_a_member_gets_nothing_of_a_colleagues_personal_scope(api, acmes, bob, walls):
    personal = {
        str(acmes.ids[name][0])
        for name in (
            "key_id",
            "token_id",
            "call_id",
            "run_id",
            "step_id",
            "event_id",
            "thread_id",
            "schedule_id",
        )
    }
    for path, _ in API:
        for url in concrete(path, acmes):
            answer = api(bob.token).get(url)
            text = answer.getvalue().decode()
            assert not [pk for pk in personal if pk in text], url


REGISTERED = [model for model in tenant_models() if model in admin.site._registry]


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model._meta.label)
def test_tenant_staff_see_their_tenant_only(staff, acmes, globexes, model, walls):
    before = of_acme(snapshot(), acmes)
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    listed = staff.get(base)
    assert listed.status_code == 200
    theirs = acmes.all_ids()
    assert not [pk for pk in theirs if pk in listed.content.decode()]
    pks = [pk for pk in theirs if model._base_manager.filter(pk=pk).exists()]
    assert pks
    for pk in pks:
        for page in ("change", "delete", "history"):
            for answer in (staff.get(f"{base}{pk}/{page}/"), staff.post(f"{base}{pk}/{page}/", {})):
                assert answer.status_code in (302, 403, 404), (page, answer.status_code)
        for action in (
            "delete_selected",
            "revoke",
            "cancel_chosen",
            "disable_chosen",
            "replay_chosen",
        ):
            staff.post(base, {"action": action, "_selected_action": [pk], "post": "yes"})
    assert of_acme(snapshot(), acmes) == before


def test_tenant_staff_find_their_own(staff, globexes):
    listed = staff.get("/admin/tenants/providerkey/").content.decode()
    assert str(globexes.ids["key_id"][0]) in listed


def test_the_walk_would_find_a_gap(api, acmes, globexes, monkeypatch):
    forget_filters(monkeypatch)
    monkeypatch.setattr(settings, "DATABASE_ROLE", "")
    connection._rest()
    try:
        client = api(globexes.person.token)
        client.raise_request_exception = False  # where nothing is filtered, code meets surprises
        leaks = list(itertools.islice(attack(client, acmes), 10))
    finally:
        monkeypatch.undo()
        connection._rest()
    assert len(leaks) == 10
