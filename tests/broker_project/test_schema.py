"""The API answers what its own description says: every route that reads, with one of everything."""

import pytest
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from tests.isolation.test_walk import API, PARAMETER, concrete
from tests.support.belongings import belongings_of

pytestmark = pytest.mark.django_db

SEALED_BY_NOBODY = "/api/v1/calls/<uuid:call_id>/payload"
"""The belongings hold a stand-in there, which does not open."""


def as_json_schema(value):
    """OpenAPI 3.0 says ``nullable`` where JSON Schema has a type of its own for that."""
    if isinstance(value, list):
        return [as_json_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {name: as_json_schema(each) for name, each in value.items() if name != "nullable"}
    return {"anyOf": [made, {"type": "null"}]} if value.get("nullable") is True else made


@pytest.fixture(scope="module")
def description():
    return SchemaGenerator().get_schema(request=None, public=True)


def misfits(description, path, answer):
    operation = description["paths"][PARAMETER.sub(r"{\1}", path)]["get"]
    expected = operation["responses"].get(
        str(answer.status_code), operation["responses"]["default"]
    )
    kind = answer["Content-Type"].partition(";")[0]
    if kind not in expected["content"]:
        return [f"{kind} is not described"]
    if kind != "application/json":
        return []
    schema = as_json_schema(expected["content"][kind]["schema"])
    schema["components"] = as_json_schema(description["components"])
    faults = Draft202012Validator(schema).iter_errors(answer.json())
    return [f"{fault.json_path}: {fault.message[:100]}" for fault in faults]


def test_every_answer_that_reads_fits_its_description(api, alice, description):
    belongings = belongings_of(alice)
    client, wrong, read = api(alice.token), {}, 0
    for path, entry in API:
        if path == SEALED_BY_NOBODY or not hasattr(entry.callback.view_class, "get"):
            continue
        for url in concrete(path, belongings):
            answer = client.get(url)
            read += answer.status_code == 200
            if found := misfits(description, path, answer):
                wrong[url] = found
    assert wrong == {}
    assert read > 30


@pytest.mark.parametrize("token", [None, "of alice"])
def test_errors_fit_their_description(api, alice, description, token):
    path = "/api/v1/keys/<uuid:key_id>"
    answer = api(token and alice.token).get(f"/api/v1/keys/{alice.scope.pk}")
    assert answer.status_code == (401 if token is None else 404)
    assert misfits(description, path, answer) == []
