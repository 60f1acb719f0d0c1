"""Writes what belongs to a tenant."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.context import all_tenants
from tenants.models import Tenant
from tenants.services.export import export_tenant


class Command(BaseCommand):
    """manage.py export_tenant acme --to folder"""

    help = "Write what belongs to a tenant as JSON lines, one file per table; secrets stay out."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("slug")
        parser.add_argument("--to", required=True, metavar="FOLDER", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """Export and count."""
        slug = options["slug"]
        with all_tenants(f"export_tenant {slug}"):
            tenant = Tenant.objects.filter(slug=slug).first()
            if tenant is None:
                raise CommandError(f"There is no tenant {slug}.")
            counted = export_tenant(tenant=tenant, folder=options["to"])
        for table, rows in sorted(counted.items()):
            self.stdout.write(f"{rows:>10}  {table}.jsonl")
