"""What the journal's tests share besides the cast."""

from datetime import UTC, datetime

from rest_framework.test import APIClient

from tenants.roles import ALL
from tenants.services.tokens import create_token

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def client_of(person, *permissions):
    """A client with a token of the person's own scope; every permission unless some are named."""
    token = create_token(
        scope=person.scope, name="test", permissions=permissions or ALL, created_by=person.user
    )
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token.text.reveal()}")
    return client
