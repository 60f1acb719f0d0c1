"""The cast that all tests share, with an intruder: nothing of acme's is ever Charlie's."""

from dataclasses import dataclass

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tenants.context import all_tenants
from tenants.models import Membership, Scope, Tenant
from tenants.roles import OF_ROLE
from tenants.services.people import add_member, create_tenant
from tenants.services.tokens import create_token


@dataclass(frozen=True)
class Person:
    """A member of one tenant, with a token of their personal scope that may do what they may."""

    user: User
    tenant: Tenant
    scope: Scope
    shared: Scope
    token: str


class JSONClient(APIClient):
    default_format = "json"


def _owner(name, slug):
    user = User.objects.create_user(username=name, email=f"{name}@{slug}.example")
    new = create_tenant(slug=slug, owner=user)
    return Person(user, new.tenant, new.personal, new.shared, new.token.text.reveal())


def _member(name, tenant, role):
    user = User.objects.create_user(username=name, email=f"{name}@{tenant.slug}.example")
    scope = add_member(tenant=tenant, user=user, role=role)
    token = create_token(scope=scope, name=name, permissions=OF_ROLE[role], created_by=user)
    shared = Scope.objects.get(tenant=tenant, kind=Scope.Kind.SHARED)
    return Person(user, tenant, scope, shared, token.text.reveal())


@pytest.fixture(autouse=True)
def operator():
    """Tests are the operator's own code; requests, tasks and engine calls of theirs are not."""
    with all_tenants("tests", routine=True):
        yield


@pytest.fixture(scope="session", autouse=True)
def static_root(tmp_path_factory):
    """WhiteNoise warns where collectstatic has not run, and warnings are errors here."""
    settings.STATIC_ROOT = tmp_path_factory.mktemp("static")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, tmp_path_factory):
    """The journal's writer spools into a folder of the tests, and is gone before the database."""
    from journal.process_writer import process_writer

    settings.JOURNAL_SPOOL_DIR = str(tmp_path_factory.mktemp("spool"))
    yield
    process_writer().close()


@pytest.fixture
def alice(db):
    """The owner of acme."""
    return _owner("alice", "acme")


@pytest.fixture
def acme(alice):
    return alice.tenant


@pytest.fixture
def bob(acme):
    """A member of acme: all permissions but admin."""
    return _member("bob", acme, Membership.Role.MEMBER)


@pytest.fixture
def charlie(db):
    """The owner of globex, who tries to get at what is acme's."""
    return _owner("charlie", "globex")


@pytest.fixture
def globex(charlie):
    return charlie.tenant


@pytest.fixture
def api():
    """``api(token)``: a client that calls with that token, or (None) as nobody."""

    def client(token=None):
        caller = JSONClient()
        if token is not None:
            caller.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        return caller

    return client
