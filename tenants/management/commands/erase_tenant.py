"""Removes everything of a tenant; says first what that would be."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.context import all_tenants
from tenants.models import Tenant
from tenants.services.erasure import count_rows, erase_tenant


class Command(BaseCommand):
    """manage.py erase_tenant acme [--confirm acme]"""

    help = (
        "Show what an erasure of the tenant removes; with --confirm SLUG remove it, its data keys"
        " first, so that backups cannot be read either. It cannot be undone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("slug")
        parser.add_argument("--confirm", metavar="SLUG", help="the slug again: erase it now")

    def handle(self, *args: Any, **options: Any) -> None:
        """Count, or erase."""
        slug, confirmed = options["slug"], options["confirm"]
        if confirmed is not None and confirmed != slug:
            raise CommandError(f"--confirm says {confirmed!r}, the tenant is {slug!r}.")
        with all_tenants(f"erase_tenant {slug}"):
            tenant = Tenant.objects.filter(slug=slug).first()
            if tenant is None:
                raise CommandError(f"There is no tenant {slug}.")
            work = erase_tenant if confirmed else count_rows
            counted = work(tenant=tenant)
        for table, rows in sorted(counted.items()):
            self.stdout.write(f"{rows:>10}  {table}")
        self.stdout.write(
            self.style.SUCCESS(f"Erased {slug}.")
            if confirmed
            else f"Nothing was removed. To erase all of this: --confirm {slug}"
        )
