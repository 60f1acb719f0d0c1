"""A tenant, its owner, their scopes and one access token, printed once."""

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from django.db import transaction

from tenants.context import all_tenants
from tenants.errors import ApplicationError
from tenants.services.people import NewTenant, create_tenant, grant_admin_site, person_by_email


class Command(BaseCommand):
    """manage.py create_tenant acme --owner alice@example.com"""

    help = "Create a tenant with its owner, their scopes and one access token (printed once)."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("slug", help="short name, e.g. acme")
        parser.add_argument(
            "--owner", required=True, metavar="EMAIL", help="an existing user or a new one"
        )
        parser.add_argument("--name", default="", help="full name; the slug if left out")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--admin-password",
            metavar="PASSWORD",
            help="also make the owner an administrator of the whole installation, for trials",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and print."""
        try:
            with all_tenants(f"create_tenant {options['slug']}"):
                new = self._create(options)
        except ApplicationError as error:
            raise CommandError(error.message) from None
        if options["json"]:
            self.stdout.write(json.dumps(_as_dict(new)))
            return
        self.stdout.write(f"Tenant {new.tenant.slug}, owner {new.owner.email}")
        self.stdout.write(f"  personal scope  {new.personal.pk}")
        self.stdout.write(f"  shared scope    {new.shared.pk}")
        self.stdout.write(f"Access token (shown only now):\n  {new.token.text.reveal()}")

    @transaction.atomic
    def _create(self, options: dict[str, Any]) -> NewTenant:
        try:
            validate_email(options["owner"])
        except ValidationError:
            raise CommandError(f"{options['owner']!r} is not an e-mail address.") from None
        owner = person_by_email(email=options["owner"])
        if options["admin_password"]:
            grant_admin_site(user=owner, password=options["admin_password"])
        return create_tenant(slug=options["slug"], owner=owner, name=options["name"])


def _as_dict(new: NewTenant) -> dict[str, Any]:
    return {
        "tenant": {"id": str(new.tenant.pk), "slug": new.tenant.slug},
        "owner": {"id": new.owner.pk, "email": new.owner.email},
        "scopes": {"personal": str(new.personal.pk), "shared": str(new.shared.pk)},
        "token": new.token.text.reveal(),
    }
