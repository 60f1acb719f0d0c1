"""Moves every tenant's data key under the active encryption key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from tenants import vault
from tenants.context import all_tenants
from tenants.errors import ApplicationError
from tenants.services.data_keys import (
    abandon_encryption_key,
    forget_unused_encryption_keys,
    rewrap_batch,
)


class Command(BaseCommand):
    """manage.py rotate_encryption_keys"""

    help = (
        "Re-encrypt the data keys under the first key of BROKER_ENCRYPTION_KEYS. Secrets are not"
        " touched, the service may run, and an interrupted rotation is simply started again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--batch-size", type=int, default=500)
        parser.add_argument(
            "--abandon",
            metavar="ID",
            help="give up a lost key instead: what it encrypted has to be entered again",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Rotate, or abandon a key."""
        try:
            with all_tenants("rotate_encryption_keys"):
                self._run(options)
        except ApplicationError as error:
            raise CommandError(error.message) from None

    def _run(self, options: dict[str, Any]) -> None:
        if options["abandon"]:
            abandon_encryption_key(kek_id=options["abandon"], now=timezone.now())
            self.stdout.write(f"Gave up {options['abandon']}.")
        else:
            self._rotate(max(1, options["batch_size"]))

    def _rotate(self, size: int) -> None:
        done, failed, after = 0, [], None
        while (batch := rewrap_batch(after=after, size=size)).last is not None:
            done, after = done + batch.rewrapped, batch.last
            failed += batch.failed
            self.stdout.write(f"{done} data keys under {vault.keyring().active}")
        for kek_id in forget_unused_encryption_keys():
            self.stdout.write(f"{kek_id} encrypts nothing now: take it out of the setting.")
        if failed:
            raise CommandError(
                f"{len(failed)} data keys do not open and stay as they are: {failed[0]} …"
                " `manage.py doctor` says what they concern."
            )
        self.stdout.write(self.style.SUCCESS("Every data key is under the active key."))
