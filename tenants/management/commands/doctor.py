"""Says what keeps this installation from working, and what to do."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenants.diagnosis import findings


class Command(BaseCommand):
    """manage.py doctor"""

    help = "Check database, Redis, migrations and encryption keys; say what to do."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line per finding; fail if any is bad."""
        bad = 0
        for finding in findings():
            word = self.style.SUCCESS("ok  ") if finding.ok else self.style.ERROR("FAIL")
            self.stdout.write(f"{word} {finding.subject}: {finding.detail}")
            if not finding.ok:
                bad += 1
                self.stdout.write(f"     {finding.remedy}")
        if bad:
            raise CommandError(f"{bad} of these need attention.")
