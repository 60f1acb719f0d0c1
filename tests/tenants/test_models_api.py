"""What a scope can call, as the process's broker sees it."""

import pytest

from tenants.encryption import Secret
from tenants.models import ProviderKey
from tenants.services.endpoints import add_endpoint
from tenants.services.keys import add_key

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice(transactional_db, alice):
    values = {"base_url": "https://a.example.test/v1", "model": "m", "api_key_ref": "A_KEY"}
    add_endpoint(tenant=alice.tenant, scope=None, values={"name": "ours", **values})
    return alice


def models(api, person):
    answer = api(person.token).get("/api/v1/models")
    assert answer.status_code == 200
    return {row["id"]: row for row in answer.json()["data"]}


def test_a_model_is_listed_with_whether_a_key_exists(api, alice, charlie):
    ours = models(api, alice)["acme/ours"]
    assert (ours["alias"], ours["model"], ours["api_key_ref"]) == ("ours", "m", "A_KEY")
    assert (ours["has_key"], ours["usable"]) == (False, False)
    add_key(scope=alice.shared, ref="A_KEY", value=Secret("x" * 30))
    ours = models(api, alice)["acme/ours"]
    assert (ours["has_key"], ours["usable"]) == (True, True)
    assert "acme/ours" not in models(api, charlie)


def test_a_key_that_does_not_open_is_no_key_to_call_with(api, alice):
    add_key(scope=alice.scope, ref="A_KEY", value=Secret("x" * 30))
    ProviderKey.objects.update(sealed=b"rubbish")
    ours = models(api, alice)["acme/ours"]
    assert (ours["has_key"], ours["usable"]) == (False, False)
