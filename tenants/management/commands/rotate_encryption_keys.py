"""Moves every tenant's data key under the active encryption key."""

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from tenants import vault
from tenants.context import all_tenants
from tenants.errors import ApplicationError
from tenants.services.data_keys import (
    abandon_encryption_key,
    forget_unused_encryption_keys,
    rewrap_batch,
)
from tenants.services.reencryption import reseal_secrets, tenants_sealed_before

REPORT_EVERY = 100
"""Tenants between two lines of progress."""


class Command(BaseCommand):
    """manage.py rotate_encryption_keys"""

    help = (
        "Re-encrypt the data keys under the first key of BROKER_ENCRYPTION_KEYS. The service may"
        " run, and an interrupted rotation is simply started again. Secrets are only touched with"
        " --secrets, which gives every tenant a new data key."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--batch-size", type=int, default=500)
        parser.add_argument(
            "--abandon",
            metavar="ID",
            help="give up a lost key instead: what it encrypted has to be entered again",
        )

        parser.add_argument(
            "--secrets",
            action="store_true",
            help="re-encrypt every secret under a new data key of its tenant",
        )
        parser.add_argument(
            "--before",
            metavar="TIME",
            help="with --secrets: leave out tenants whose data key is newer, to go on after an"
            " interruption",
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
        elif options["secrets"]:
            self._reseal(_moment(options["before"]))
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

    def _reseal(self, before: datetime) -> None:
        self.stdout.write(f"To go on after an interruption: --secrets --before {before:%FT%TZ}")
        waiting = list(tenants_sealed_before(before).values_list("pk", flat=True))
        total, moved, failed = len(waiting), 0, []
        for number, tenant_id in enumerate(waiting, start=1):
            resealed = reseal_secrets(tenant_id=tenant_id)
            moved += resealed.moved
            failed += resealed.failed
            if number % REPORT_EVERY == 0 or number == total:
                self.stdout.write(f"{moved} secrets of {number} of {total} tenants")
        if failed:
            raise CommandError(f"{len(failed)} secrets do not open and stay: {failed[0]} …")
        self.stdout.write(self.style.SUCCESS("Every secret is under a new data key."))


def _moment(text: str | None) -> datetime:
    if text is None:
        return timezone.now()
    moment = parse_datetime(text)
    if moment is None or timezone.is_naive(moment):
        raise CommandError("--before takes a time with its offset, as 2026-03-01T12:00:00Z.")
    return moment
