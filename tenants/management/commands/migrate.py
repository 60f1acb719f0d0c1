"""Django's migrate, as the owner of the tables, with the database's roles made and served."""

from typing import Any

from django.core.management.commands import migrate

from tenants.db_roles import database, ensure_roles, grant_privileges


class Command(migrate.Command):
    """manage.py migrate"""

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the roles, migrate, give them their rights."""
        using = options["database"]
        if options["check_unapplied"] or options["plan"]:
            super().handle(*args, **options)
            return
        ensure_roles(using)
        with database(using).as_owner():
            super().handle(*args, **options)
        grant_privileges(using)
