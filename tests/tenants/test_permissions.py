"""What a caller may do; a route that forgot to say is refused."""

import re
from typing import ClassVar

import pytest
from django.http import HttpResponse
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from tenants.roles import ALL, OF_ROLE
from tenants.services.tokens import create_token
from tenants.urls import urlpatterns

# Permission (None: any caller) by route and method: the table that reviewers read.
NEEDED = {
    "keys": {"GET": "keys:write", "POST": "keys:write"},
    "key": {"GET": "keys:write", "PATCH": "keys:write", "DELETE": "keys:write"},
    "key-check": {"POST": "keys:write"},
    "audit": {"GET": "admin"},
    "limits": {"GET": None, "POST": "admin"},
    "limit": {"DELETE": "admin"},
    "scopes": {"GET": None},
    "scope": {"PATCH": "admin"},
    "tokens": {"GET": "keys:write", "POST": "keys:write"},
    "token": {"DELETE": "keys:write"},
    "endpoints": {"GET": None, "POST": "keys:write"},
    "endpoint": {"GET": None, "PATCH": "keys:write", "DELETE": "keys:write"},
    "models": {"GET": None},
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
NOWHERE = "01890000-0000-7000-8000-000000000000"


def path_of(pattern):
    return "/api/v1/" + re.sub("<.*?>", NOWHERE, str(pattern.pattern))


def test_the_table_names_every_route():
    assert {pattern.name for pattern in urlpatterns} == set(NEEDED)


@pytest.mark.parametrize(
    ("pattern", "method", "needed"),
    [
        pytest.param(pattern, method, needed, id=f"{method} {pattern.name}")
        for pattern in urlpatterns
        for method, needed in NEEDED[pattern.name].items()
        if needed is not None
    ],
)
def test_a_token_with_every_other_permission_is_refused(api, alice, pattern, method, needed):
    weak = create_token(
        scope=alice.scope, name="weak", permissions=ALL - {needed}, created_by=alice.user
    )
    answer = api(weak.text.reveal()).generic(method, path_of(pattern))
    assert answer.status_code == 403
    assert answer.json()["error"]["type"] == "permission_error"


@pytest.mark.parametrize("pattern", urlpatterns, ids=lambda pattern: pattern.name)
@pytest.mark.parametrize("method", METHODS)
def test_nobody_gets_past_any_route(api, db, pattern, method):
    assert api().generic(method, path_of(pattern)).status_code == 401


@pytest.mark.parametrize("pattern", urlpatterns, ids=lambda pattern: pattern.name)
def test_a_method_that_a_route_has_not_is_405(api, alice, pattern):
    assert api(alice.token).put(path_of(pattern), {}).status_code == 405


class Forgetful(APIView):
    def get(self, request):
        return HttpResponse("let in")


class Partly(APIView):
    required_permissions: ClassVar = {"POST": "runs:write"}

    def get(self, request):
        return HttpResponse("let in")


@pytest.mark.parametrize("view", [Forgetful, Partly])
@pytest.mark.parametrize("method", ["get", "head", "options"])
def test_a_view_that_does_not_say_what_it_needs_is_refused(alice, view, method):
    request = getattr(APIRequestFactory(), method)(
        "/", headers={"Authorization": f"Bearer {alice.token}"}
    )
    assert view.as_view()(request).status_code == 403


def test_a_viewer_reads_a_member_works_and_only_admins_administer():
    assert OF_ROLE["viewer"] == {"runs:read", "journal:read"}
    assert OF_ROLE["member"] == ALL - {"admin"}
    assert OF_ROLE["owner"] == OF_ROLE["admin"] == ALL
