"""The cast: Alice owns Acme and Aaron works there; Bob owns Globex and has no business at Acme."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from journal.models import Call
from tenants.models import Membership, Scope
from tenants.roles import ALL
from tenants.services.people import add_member, create_tenant, person_by_email
from tenants.services.tokens import create_token

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Person:
    user: User
    scope: Scope

    def client(self, *permissions):
        token = create_token(
            scope=self.scope, name="test", permissions=permissions or ALL, created_by=self.user
        )
        client = APIClient(raise_request_exception=False)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token.text.reveal()}")
        return client


@pytest.fixture
def alice(db):
    new = create_tenant(slug="acme", owner=person_by_email(email="alice@acme.test"))
    return Person(new.owner, new.personal)


@pytest.fixture
def aaron(alice):
    user = person_by_email(email="aaron@acme.test")
    return Person(
        user, add_member(tenant=alice.scope.tenant, user=user, role=Membership.Role.MEMBER)
    )


@pytest.fixture
def bob(db):
    new = create_tenant(slug="globex", owner=person_by_email(email="bob@globex.test"))
    return Person(new.owner, new.personal)


@pytest.fixture
def journaled():
    """Write a call straight into the table: ``journaled(alice, ts=…, **columns)``.

    The ids are UUIDv7 of ``ts``, rising within a millisecond as those of one process do.
    """

    number = count()

    def write(person, ts=NOON, **columns):
        milliseconds = (ts - EPOCH) // timedelta(milliseconds=1)
        return Call.objects.create(
            id=UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | next(number)),
            scope_id=person.scope.id,
            tenant_id=person.scope.tenant_id,
            ts=ts,
            **{"llm_name": "small", "status": "ok", **columns},
        )

    return write
