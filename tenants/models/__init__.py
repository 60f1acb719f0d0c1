"""Who calls, with whose keys."""

from tenants.models.audit import AuditEntry
from tenants.models.encryption import DataKey, EncryptionKey
from tenants.models.endpoints import Endpoint
from tenants.models.idempotency import IdempotentRequest
from tenants.models.keys import ProviderKey
from tenants.models.limits import Limit, Reservation, Spending
from tenants.models.people import Membership, Scope, Tenant
from tenants.models.tokens import AccessToken

__all__ = [
    "AccessToken",
    "AuditEntry",
    "DataKey",
    "EncryptionKey",
    "Endpoint",
    "IdempotentRequest",
    "Limit",
    "Membership",
    "ProviderKey",
    "Reservation",
    "Scope",
    "Spending",
    "Tenant",
]
