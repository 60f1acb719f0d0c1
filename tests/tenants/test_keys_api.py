"""Provider keys over REST: stored once, masked for ever, replaced, switched off, deleted."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tenants.encryption import Secret
from tenants.models import ProviderKey
from tenants.services.keys import add_key
from tenants.vault import open_value

VALUE = "sk-fake-7Hq2mZ0pTENANTA93xLw"
OTHER = "sk-fake-ROTATED0pTENANTA2222"


def stored_value(pk):
    return open_value(ProviderKey.objects.select_related("data_key").get(pk=pk)).reveal()


@pytest.fixture
def create(api, alice):
    def post(token=alice.token, **body):
        return api(token).post("/api/v1/keys", {"ref": "OPENAI_API_KEY", "value": VALUE, **body})

    return post


def test_a_stored_key_is_answered_masked(create, alice):
    answer = create(label="Основной ключ", priority=5)
    key = answer.json()
    assert answer.status_code == 201
    assert key["object"] == "key"
    assert key["scope"] == str(alice.scope.pk)
    assert (key["ref"], key["label"], key["priority"]) == ("OPENAI_API_KEY", "Основной ключ", 5)
    assert (key["hint"], key["status"], key["needs_reentry"]) == ("3xLw", "active", False)
    assert VALUE[:8] not in answer.content.decode()
    assert stored_value(key["id"]) == VALUE


def test_line_ends_around_a_pasted_key_do_not_get_stored(create):
    assert stored_value(create(value=f"  {VALUE}\r\n").json()["id"]) == VALUE


@pytest.mark.parametrize(
    "value", [f"{VALUE}\u200b", "sk-fake-7H\nX-Evil: 1", "", 5, None, [VALUE], "\ud83d"]
)
def test_an_impossible_value_is_refused_and_not_repeated(api, alice, value):
    body = json.dumps({"ref": "OPENAI_API_KEY", "value": value})
    answer = api(alice.token).post("/api/v1/keys", body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "value"
    assert "sk-fake" not in answer.content.decode()
    assert not ProviderKey.objects.exists()


@pytest.mark.parametrize("ref", ["openai", "O", "1KEY", "OPENAI-KEY", "own:KEY", "КЛЮЧ", "A" * 65])
def test_a_reference_has_one_form(create, ref):
    answer = create(ref=ref)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "ref")


def test_several_values_for_one_reference_but_none_twice(create):
    assert create().status_code == 201
    assert create(value=OTHER).status_code == 201
    again = create(value=f" {VALUE} ")
    assert (again.status_code, again.json()["error"]["type"]) == (409, "conflict_error")
    assert VALUE[:8] not in again.content.decode()
    assert create(ref="GROQ_API_KEY").status_code == 201
    assert create(scope="shared").status_code == 201


def test_the_same_value_looks_different_in_every_scope_and_tenant(create, alice, charlie):
    create()
    create(scope="shared")
    create(token=charlie.token)
    rows = ProviderKey.objects.values_list("fingerprint", "sealed")
    assert len({bytes(each) for each, _ in rows}) == len({bytes(each) for _, each in rows}) == 3


def test_a_replaced_value_is_the_one_that_counts(api, alice, create):
    key = create().json()
    ProviderKey.objects.update(status="refused", last_error="401")
    answer = api(alice.token).patch(f"/api/v1/keys/{key['id']}", {"value": OTHER})
    assert (answer.json()["hint"], answer.json()["status"]) == ("2222", "active")
    assert answer.json()["last_error"] == ""
    assert stored_value(key["id"]) == OTHER


def test_a_change_leaves_alone_what_it_does_not_name(api, alice, create):
    key = create(label="first", priority=7).json()
    answer = api(alice.token).patch(f"/api/v1/keys/{key['id']}", {"status": "disabled"})
    assert {**answer.json(), "updated_at": None} == {
        **key,
        "status": "disabled",
        "updated_at": None,
    }
    assert stored_value(key["id"]) == VALUE


def test_only_a_provider_marks_a_key_refused(api, alice, create):
    path = f"/api/v1/keys/{create().json()['id']}"
    assert api(alice.token).patch(path, {"status": "refused"}).status_code == 400


def test_a_key_cannot_become_a_value_that_is_stored_already(api, alice, create):
    create()
    second = create(value=OTHER).json()
    answer = api(alice.token).patch(f"/api/v1/keys/{second['id']}", {"value": VALUE})
    assert answer.status_code == 409
    assert stored_value(second["id"]) == OTHER


def test_a_deleted_key_is_gone(api, alice, create):
    path = f"/api/v1/keys/{create().json()['id']}"
    assert api(alice.token).delete(path).status_code == 204
    assert api(alice.token).get(path).status_code == 404
    assert not ProviderKey.objects.exists()


def test_lists_are_newest_first_in_pages(api, alice, create):
    ids = [create(ref=f"KEY_{number}").json()["id"] for number in range(5)][::-1]
    first = api(alice.token).get("/api/v1/keys?limit=2").json()
    assert first["object"] == "list"
    assert [row["id"] for row in first["data"]] == ids[:2]
    assert (first["has_more"], first["next_after"]) == (True, ids[1])
    rest = api(alice.token).get(f"/api/v1/keys?limit=200&after={ids[1]}").json()
    assert [row["id"] for row in rest["data"]] == ids[2:]
    assert (rest["has_more"], rest["next_after"]) == (False, None)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=x",
        "limit=-1",
        "limit=",
        "limit=²",
        "limit=" + "9" * 5000,
        "limit=000000001" + "9" * 9,
        "limit=000000001" + "9" * 5000,
        "after=x",
        "after=",
        "after=%00",
    ],
)
def test_a_bad_page_is_refused(api, alice, query):
    answer = api(alice.token).get(f"/api/v1/keys?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, query.partition("=")[0])


def test_a_list_costs_the_same_queries_however_long_it_is(api, alice, create):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            assert api(alice.token).get("/api/v1/keys").status_code == 200
        return len(captured)

    create()
    queries()
    before = queries()
    for number in range(5):
        create(ref=f"KEY_{number}")
    assert queries() == before == 3


def test_a_value_that_no_longer_opens_is_listed_and_can_be_entered_again(api, alice, create):
    key = create().json()
    ProviderKey.objects.update(sealed=bytes(ProviderKey.objects.get().sealed)[:-1])
    listed = api(alice.token).get("/api/v1/keys").json()["data"][0]
    assert (listed["needs_reentry"], listed["hint"]) == (True, "3xLw")
    healed = api(alice.token).patch(f"/api/v1/keys/{key['id']}", {"value": VALUE}).json()
    assert healed["needs_reentry"] is False
    assert stored_value(key["id"]) == VALUE


def test_after_a_lost_encryption_key_new_values_get_a_new_data_key(alice, settings):
    first = add_key(scope=alice.scope, ref="A_KEY", value=Secret(VALUE))
    settings.BROKER_ENCRYPTION_KEYS = "fresh:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
    second = add_key(scope=alice.scope, ref="A_KEY", value=Secret(OTHER))
    assert first.data_key_id != second.data_key_id
    assert stored_value(second.pk) == OTHER
