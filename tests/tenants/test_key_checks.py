"""A stored key is tried with its provider on demand, and only that key."""

import pytest
from django.test import Client

from broker_project.broker import project_broker
from tenants.encryption import Secret
from tenants.models import ProviderKey
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key
from tests.support.model_server import ModelServer, fail, say

pytestmark = pytest.mark.django_db(transaction=True)

VALUE = "sk-fake-7Hq2mZ0pTENANTA93xLw"
KEYS = "/admin/tenants/providerkey/"


@pytest.fixture
def provider(settings):
    settings.BROKER_ALLOW_PRIVATE_ADDRESSES = True
    project_broker.cache_clear()
    with ModelServer() as server:
        yield server
    project_broker().close()
    project_broker.cache_clear()


@pytest.fixture
def key(alice, provider):
    add_endpoint(
        tenant=alice.tenant,
        scope=alice.scope,
        values={
            "name": "mine", "base_url": provider.base_url, "model": "m", "api_key_ref": "A_KEY",
        },
    )  # fmt: skip
    add_key(scope=alice.scope, ref="A_KEY", value=Secret("x" * 30), priority=1)
    return add_key(scope=alice.scope, ref="A_KEY", value=Secret(VALUE), priority=2)


def check(api, person, key):
    return api(person.token).post(f"/api/v1/keys/{key.pk}/check").json()


def test_an_accepted_key_is_said_to_be_and_was_the_one_that_paid(api, alice, key, provider):
    provider.script(say("H"))
    checked = check(api, alice, key)
    assert (checked["standing"], checked["llm"]) == ("accepted", "acme/mine")
    (asked,) = provider.requests
    assert asked.authorization == f"Bearer {VALUE}"
    assert asked.body["max_tokens"] == 1


def test_a_refused_key_is_out_of_use_and_shown_in_no_answer(api, alice, key, provider):
    provider.script(fail(401, f"Incorrect API key provided: {VALUE}"))
    checked = check(api, alice, key)
    assert checked["standing"] == "refused"
    assert VALUE not in str(checked)
    key.refresh_from_db()
    assert key.status == ProviderKey.Status.REFUSED


@pytest.mark.parametrize(("status", "standing"), [(429, "accepted"), (500, "unknown")])
def test_what_says_nothing_of_the_key_leaves_it_in_use(
    status, standing, *, api, alice, key, provider
):
    provider.script(fail(status, "not now"))
    assert check(api, alice, key)["standing"] == standing
    key.refresh_from_db()
    assert key.status == ProviderKey.Status.ACTIVE


def test_a_key_that_no_model_takes_cannot_be_checked(api, alice, provider):
    lonely = add_key(scope=alice.scope, ref="NOBODYS_KEY", value=Secret(VALUE))
    answer = api(alice.token).post(f"/api/v1/keys/{lonely.pk}/check")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "no_model_for_key"
    assert provider.requests == []


def test_the_admin_says_what_the_provider_thinks_of_a_new_value(admin_user, alice, key, provider):
    site = Client()
    site.force_login(admin_user)
    form = {
        "scope": str(alice.scope.pk), "ref": "A_KEY", "label": "", "priority": "3",
        "status": "active", "value": f"{VALUE}-2", "check": "on",
    }  # fmt: skip
    provider.script(fail(401, "Incorrect API key provided"))
    added = site.post(f"{KEYS}add/", form, follow=True)
    assert "refuses this key" in added.content.decode()
    provider.script(say("H"))
    chosen = {"action": "check_chosen", "_selected_action": [str(key.pk)]}
    assert "accepts this key" in site.post(KEYS, chosen, follow=True).content.decode()
    site.post(f"{KEYS}add/", {**form, "value": f"{VALUE}-3", "check": ""})
    assert len(provider.requests) == 2


def test_the_admin_says_how_many_of_the_chosen_keys_were_not_checked(
    admin_user, alice, key, provider
):
    site = Client()
    site.force_login(admin_user)
    for number in range(10):
        add_key(scope=alice.scope, ref="A_KEY", value=Secret(f"{VALUE}-{number}"), priority=number)
    provider.script(*[say("H")] * 12)
    ids = [str(pk) for pk in ProviderKey.objects.filter(ref="A_KEY").values_list("pk", flat=True)]
    chosen = {"action": "check_chosen", "_selected_action": ids}
    page = site.post(KEYS, chosen, follow=True).content.decode()
    assert len(ids) == 12
    assert page.count("accepts this key") == len(provider.requests) == 10
    assert "10 of 12 keys were checked, the most at one time; 2 were not." in page
    chosen["_selected_action"] = ids[:10]
    assert "were not" not in site.post(KEYS, chosen, follow=True).content.decode()
