"""Nobody sets what the server decides: fields that a route does not know are refused everywhere."""

import pytest

from tests.isolation.test_walk import API, WRITING, concrete
from tests.support.belongings import snapshot

pytestmark = pytest.mark.django_db

# What takes no body reads none, so there is nothing in it that could be set.
WITHOUT_BODY = {"cancel", "check", "refresh", "replay", "restore", "secret"}


@pytest.mark.parametrize("field", ["id", "tenant", "scope_id", "created_by", "status", "cost"])
def test_every_route_that_takes_a_body_names_the_field_that_it_does_not_know(api, acmes, field):
    client, before = api(acmes.person.token), snapshot()
    wrong = {}
    for path, entry in API:
        for verb in WRITING:
            if path.rsplit("/", 1)[1] in WITHOUT_BODY and "<" in path:
                continue
            if hasattr(entry.callback.view_class, verb):
                answer = getattr(client, verb)(concrete(path, acmes)[0], {field: "x"})
                error = answer.json().get("error", {})
                if (answer.status_code, error.get("param")) != (400, field):
                    wrong[verb, path] = answer.status_code
    assert wrong == {}
    assert snapshot() == before
