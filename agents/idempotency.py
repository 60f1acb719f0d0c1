"""The header by which a client says that two requests are one."""

from __future__ import annotations

from rest_framework.request import Request

from tenants.errors import InvalidInput

MAX_LENGTH = 255


def idempotency_key_of(request: Request) -> str | None:
    """The request's Idempotency-Key. Raises InvalidInput for one that is empty, long or binary."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not (0 < len(key) <= MAX_LENGTH and key.isascii() and key.isprintable()):
        raise InvalidInput(
            f"Idempotency-Key has 1 to {MAX_LENGTH} printable ASCII characters.",
            code="invalid_idempotency_key",
            param="Idempotency-Key",
        )
    return key
