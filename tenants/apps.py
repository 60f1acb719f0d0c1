"""The app that knows who calls, and with whose keys."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Refuses to start with encryption keys that cannot be read."""

    name = "tenants"

    def ready(self) -> None:
        """Register the checks and the API description; read the keyring once."""
        from tenants import checks, schema, vault  # noqa: F401, PLC0415 - models are ready only now

        vault.keyring()
