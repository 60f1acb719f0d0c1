"""manage.py journal_retention: delete what tenants do not keep any longer."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from journal.retention import BATCH, apply_retention
from tenants.context import all_tenants


class Command(BaseCommand):
    """What the daily task journal.retention does."""

    help = "Delete calls and payloads that are older than their tenant keeps, a batch at a time."

    def add_arguments(self, parser: CommandParser) -> None:
        """How many rows a statement deletes."""
        parser.add_argument("--batch", type=int, default=BATCH, help="rows to a statement")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and say what went."""
        with all_tenants("command journal_retention"):
            gone = apply_retention(now=timezone.now(), batch=options["batch"])
        self.stdout.write(f"Deleted {gone['calls']} calls and {gone['payloads']} payloads.")
