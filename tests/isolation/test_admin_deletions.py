"""Rows go from the admin as they go over the API: through services, which tell the audit log."""

import pytest
from django.contrib import admin
from django.urls import reverse

from journal.models import RetentionPolicy
from tenants.admin.base import KeptAdmin, ServiceAdmin
from tenants.encryption import Secret
from tenants.models import AuditEntry, Limit, ProviderKey
from tenants.services.keys import add_key
from tenants.services.limits import set_limit

pytestmark = pytest.mark.django_db


def deleted_from_the_list(client, *rows):
    meta = rows[0]._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows]}
    return client.post(url, {**chosen, "post": "yes"}, follow=True)


def deleted_from_its_page(client, row):
    url = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_delete", args=[row.pk])
    return client.post(url, {"post": "yes"}, follow=True)


def test_every_page_says_how_its_rows_are_deleted():
    pages = [each for each in admin.site._registry.values() if isinstance(each, ServiceAdmin)]
    deleting = [each for each in pages if not isinstance(each, KeptAdmin)]
    assert len(deleting) > 5
    assert [each for each in deleting if type(each).delete_row is ServiceAdmin.delete_row] == []


def test_the_audit_log_is_told_of_each_row(admin_client, alice):
    keys = [add_key(scope=alice.scope, ref=f"K{n}_KEY", value=Secret("k" * 30)) for n in range(3)]
    deleted_from_its_page(admin_client, keys[0])
    deleted_from_the_list(admin_client, *keys[1:])
    limit = set_limit(tenant=alice.tenant, kind="requests_per_minute", value=5)
    deleted_from_the_list(admin_client, limit)
    assert not ProviderKey.objects.exists()
    assert not Limit.objects.exists()
    gone = AuditEntry.objects.filter(action__endswith=".deleted")
    assert sorted(gone.values_list("action", flat=True)) == ["key.deleted"] * 3 + ["limit.deleted"]


@pytest.mark.parametrize("delete", [deleted_from_its_page, deleted_from_the_list])
def test_what_a_service_refuses_is_a_message_and_nothing_is_deleted(admin_client, alice, delete):
    nobodys = RetentionPolicy.objects.create(tenant_id=alice.scope.pk)
    answer = delete(admin_client, nobodys)
    assert "There is no tenant with this id." in answer.content.decode()
    assert RetentionPolicy.objects.filter(pk=nobodys.pk).exists()
