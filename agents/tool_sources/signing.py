"""Signatures by which servers of tenants know that a request is ours: Standard Webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime

from tenants.encryption import Secret

PREFIX = "whsec_"


def new_secret() -> Secret[str]:
    """A secret to share with such a server."""
    return Secret(PREFIX + base64.b64encode(secrets.token_bytes(32)).decode())


def signed_headers(
    *shared: Secret[str], message_id: str, body: bytes, now: datetime
) -> dict[str, str]:
    """The headers that prove who sent ``body`` and when, to holders of any of the secrets."""
    timestamp = str(int(now.timestamp()))
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(each, content) for each in shared),
    }


def _signature(secret: Secret[str], content: bytes) -> str:
    key = Secret(base64.b64decode(secret.reveal().removeprefix(PREFIX)))
    return f"v1,{base64.b64encode(hmac.digest(key.reveal(), content, hashlib.sha256)).decode()}"
