"""Secrets at rest: a key of the keyring wraps a tenant's data key, and that seals its secrets.

Nothing here knows Django. Formats: docs of envelope.py; how the parts are stored: tenants/vault.py.
"""

from tenants.encryption.cached import CachedKeyring
from tenants.encryption.envelope import DataKeys, Place, WrappedKey
from tenants.encryption.keyring import EnvKeyring, Keyring, KeyUnavailable, Tampered
from tenants.encryption.secret import Secret

__all__ = [
    "CachedKeyring",
    "DataKeys",
    "EnvKeyring",
    "KeyUnavailable",
    "Keyring",
    "Place",
    "Secret",
    "Tampered",
    "WrappedKey",
]
