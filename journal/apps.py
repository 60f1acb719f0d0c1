"""The app that knows what happened."""

from django.apps import AppConfig


class JournalConfig(AppConfig):
    """Erases its own part of a tenant, since its totals are to stay true."""

    name = "journal"

    def ready(self) -> None:
        """Take part in erasing."""
        from journal.retention import erase_journal  # noqa: PLC0415 - models are ready only now
        from tenants.services.erasure import register_eraser  # noqa: PLC0415

        register_eraser(erase_journal)
