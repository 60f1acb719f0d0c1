"""Who calls, with whose keys."""

from tenants.models.encryption import DataKey, EncryptionKey
from tenants.models.endpoints import Endpoint
from tenants.models.keys import ProviderKey
from tenants.models.people import Membership, Scope, Tenant
from tenants.models.tokens import AccessToken

__all__ = [
    "AccessToken",
    "DataKey",
    "EncryptionKey",
    "Endpoint",
    "Membership",
    "ProviderKey",
    "Scope",
    "Tenant",
]
