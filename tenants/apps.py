"""The app that knows who calls, and with whose keys."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Refuses to start with settings of its own that cannot be read."""

    name = "tenants"

    def ready(self) -> None:
        """Register the checks and the API description; read keyring and addresses once."""
        # Models are ready only now.
        from tenants import addresses, checks, schema, vault  # noqa: F401, PLC0415

        vault.keyring()
        addresses.address_policy()
