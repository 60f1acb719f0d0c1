"""manage.py journal_sweep: close lost calls and bring the daily figures up to now."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from journal.figures.adding_up import add_up, figures_until
from tenants.context import all_tenants


class Command(BaseCommand):
    """What the task journal.add_up does, for installations without a beat and for operators."""

    help = "Close calls whose process was lost (as unknown), and bring the daily figures up to now."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and say how far the figures reach."""
        with all_tenants("command journal_sweep"):
            add_up(now=timezone.now())
        self.stdout.write(f"Figures hold every call that began before {figures_until():%F %T} UTC.")
