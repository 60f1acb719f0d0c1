"""Which keys may be sent to an endpoint that a tenant defined itself.

Whoever defines an endpoint chooses where its key is sent. So a scope's own endpoint gets that
scope's keys and nobody else's, and a tenant's endpoint never gets the installation's. The
limit travels in the reference that the engine asks for: ``own:REF`` or ``tenant:REF``.
"""

from enum import IntEnum

from tenants.models import Endpoint


class Limit(IntEnum):
    """The furthest level whose keys may pay."""

    OWN = 1
    TENANT = 2
    INSTALLATION = 3


_PREFIXES = {"own:": Limit.OWN, "tenant:": Limit.TENANT}


def limited_ref(endpoint: Endpoint) -> str:
    """The reference that the engine is given for ``endpoint``; empty where no key is needed."""
    if not endpoint.api_key_ref:
        return ""
    prefix = "tenant:" if endpoint.scope_id is None else "own:"
    return prefix + endpoint.api_key_ref


def parse_ref(ref: str) -> tuple[str, Limit]:
    """The stored reference, and how far it may be looked up."""
    for prefix, limit in _PREFIXES.items():
        if ref.startswith(prefix):
            return ref.removeprefix(prefix), limit
    return ref, Limit.INSTALLATION
