"""Lists over many rows: searches by beginnings, and pages far from the first."""

import pytest

from tenants.admin import lists
from tenants.encryption import Secret
from tenants.models import ProviderKey
from tenants.services.keys import add_key

KEYS = "/admin/tenants/providerkey/"


@pytest.fixture
def keys(alice, charlie):
    """Of two tenants, acme and its neighbour."""
    for number, (scope, ref, label) in enumerate(
        [
            (alice.scope, "GROQ_API_KEY", "work"),
            (alice.scope, "OPENAI_API_KEY", ""),
            (charlie.scope, "OPENAI_API_KEY", "Работа"),
        ]
    ):
        add_key(scope=scope, ref=ref, value=Secret(f"{number}" * 30), label=label)


def found(admin_client, search):
    rows = admin_client.get(KEYS, {"q": search}).context["cl"].result_list
    return sorted((key.tenant.slug, key.ref) for key in rows)


# Matches of more rows than FEW are looked for in another way, which must find the same.
@pytest.mark.parametrize("few", [1000, 1, 0])
def test_a_search_finds_what_begins_with_each_word_in_any_field(
    *, admin_client, keys, alice, charlie, few, monkeypatch
):
    monkeypatch.setattr(lists, "FEW", few)
    ours, theirs = alice.tenant.slug, charlie.tenant.slug
    assert found(admin_client, "openai") == sorted(
        [(ours, "OPENAI_API_KEY"), (theirs, "OPENAI_API_KEY")]
    )
    assert found(admin_client, ours) == [(ours, "GROQ_API_KEY"), (ours, "OPENAI_API_KEY")]
    assert found(admin_client, f"{ours.upper()} groq") == [(ours, "GROQ_API_KEY")]
    assert found(admin_client, "работа") == [(theirs, "OPENAI_API_KEY")]
    assert (
        found(admin_client, "api_key")
        == found(admin_client, "groq openai")
        == found(admin_client, "%")
        == []
    )


def test_each_page_has_its_own_rows_newest_first(admin_client, alice, monkeypatch):
    for number in range(7):
        add_key(scope=alice.scope, ref=f"KEY_{number}", value=Secret("x" * 30))
    monkeypatch.setattr("tenants.admin.keys.ProviderKeyAdmin.list_per_page", 3)

    def page(number):
        return [key.ref for key in admin_client.get(f"{KEYS}?p={number}").context["cl"].result_list]

    assert [page(1), page(2), page(3)] == [
        ["KEY_6", "KEY_5", "KEY_4"],
        ["KEY_3", "KEY_2", "KEY_1"],
        ["KEY_0"],
    ]


def test_a_list_keeps_the_order_that_was_asked_for(admin_client, keys):
    by_reference = 1
    rows = admin_client.get(f"{KEYS}?o={by_reference}").context["cl"].result_list
    assert [key.ref for key in rows] == sorted(ProviderKey.objects.values_list("ref", flat=True))
