"""What a tenant's own staff could try in the admin beside the pages that the walk opens."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from agents.models import Run, WebhookDelivery
from journal.models import EVERYBODY, DailyFigures
from tenants.models import AccessToken, Membership, ProviderKey
from tests.isolation.test_walk import REGISTERED
from tests.support.belongings import snapshot

pytestmark = pytest.mark.django_db

FIGURES = "/admin/journal/call/figures/"


def shown(answer, acmes):
    text = answer.content.decode()
    return [each for each in (*acmes.all_ids(), "alice", "acme.example") if each in text]


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model._meta.label)
def test_lists_show_nothing_more_however_they_are_asked(staff, acmes, globexes, model):
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    tenant, scope = acmes.ids["tenant_id"][0], acmes.ids["scope_id"][0]
    for query in (
        "_popup=1&_to_field=id", "_to_field=tenant", "q=acme", f"q={scope}", f"q={tenant}",
        f"tenant__id__exact={tenant}", f"tenant_id={tenant}", f"scope_id={scope}",
        "tenant__slug__startswith=a", "user__password__startswith=p", "all=1", "o=-1.2.3", "p=2",
    ):  # fmt: skip
        answer = staff.get(f"{base}?{query}", follow=True)
        assert answer.status_code in (200, 400), query
        text = answer.content.decode().replace(str(tenant), "").replace(str(scope), "")
        assert not [each for each in acmes.all_ids() if each in text], query


def test_search_boxes_of_forms_find_only_their_own_and_no_people(staff, acmes, globexes):
    found = []
    for model, page in admin.site._registry.items():
        for field in page.autocomplete_fields:
            query = {
                "app_label": model._meta.app_label,
                "model_name": model._meta.model_name,
                "field_name": field,
            }
            answer = staff.get("/admin/autocomplete/", query)
            assert shown(answer, acmes) == [], query
            found += answer.json().get("results", [])
    assert found
    people = {"app_label": "tenants", "model_name": "membership", "field_name": "user"}
    assert staff.get("/admin/autocomplete/", people).status_code == 403


def add_member(staff, tenant, user):
    kept = tenant.memberships.get()
    return staff.post(
        f"/admin/tenants/tenant/{tenant.pk}/change/",
        {
            "name": tenant.name, "memberships-TOTAL_FORMS": 2, "memberships-INITIAL_FORMS": 1,
            "memberships-0-id": kept.pk, "memberships-0-tenant": tenant.pk,
            "memberships-0-user": kept.user_id, "memberships-0-role": kept.role,
            "memberships-1-tenant": tenant.pk, "memberships-1-user": user.pk,
            "memberships-1-role": "owner",
        },
    )  # fmt: skip


def test_staff_make_nobody_a_member_whom_their_tenant_does_not_know(staff, acmes, globexes):
    answer = add_member(staff, globexes.person.tenant, acmes.person.user)
    assert answer.status_code == 200
    assert "alice" not in answer.content.decode()
    assert not Membership.objects.filter(
        tenant=globexes.person.tenant, user=acmes.person.user
    ).exists()


def test_permissions_to_change_people_open_no_page_to_a_tenants_staff(staff, acmes, charlie):
    charlie.user.user_permissions.add(*Permission.objects.filter(content_type__app_label="auth"))
    for url in (
        "/admin/auth/user/", f"/admin/auth/user/{acmes.person.user.pk}/change/",
        f"/admin/auth/user/{acmes.person.user.pk}/password/",
        f"/admin/auth/user/{charlie.user.pk}/change/", "/admin/auth/group/",
    ):  # fmt: skip
        assert staff.get(url).status_code == 403, url
    staff.post(
        f"/admin/auth/user/{charlie.user.pk}/change/",
        {"username": "charlie", "is_active": "on", "is_staff": "on", "is_superuser": "on"},
    )
    assert not User.objects.filter(is_superuser=True).exists()


def test_who_may_only_look_finds_no_action_that_changes_something(staff, globexes, charlie):
    charlie.user.user_permissions.set(
        Permission.objects.filter(
            codename__startswith="view_", content_type__app_label__in=("tenants", "agents")
        )
    )
    before = snapshot()
    for model, names in {
        ProviderKey: ("disable_chosen", "enable_chosen", "check_chosen"),
        AccessToken: ("revoke",),
        Run: ("cancel_chosen",),
        WebhookDelivery: ("replay_chosen",),
    }.items():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        chosen = [str(pk) for pk in model.objects.values_list("pk", flat=True)]
        for name in names:
            assert f'value="{name}"' not in staff.get(base).content.decode()
            staff.post(base, {"action": name, "_selected_action": chosen})
    assert snapshot() == before


def test_figures_are_a_tenants_own_whatever_slug_is_asked_for(staff, acmes, globexes):
    DailyFigures.objects.create(
        tenant_id=EVERYBODY, scope_id=EVERYBODY, day=timezone.now().date(), cells=[]
    )
    for query in ({}, {"days": 90}, {"tenant": "acme"}, {"tenant": "globex"}):
        answer = staff.get(FIGURES, query)
        assert answer.status_code == 200
        assert shown(answer, acmes) == []
        assert "1 calls" in answer.content.decode()
    assert "No tenant has the slug acme." in staff.get(FIGURES, {"tenant": "acme"}).content.decode()
