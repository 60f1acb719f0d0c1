"""Row-level security on the journal; the partitions are reached through their parent only."""

from django.db import migrations

from tenants.migration_operations import raise_walls
from tenants.walls import Wall


class Migration(migrations.Migration):
    dependencies = [("journal", "0001_calls_and_ratings"), ("tenants", "0003_walls")]

    operations = [
        raise_walls("journal_call", Wall(scope="scope_id")),
        raise_walls("journal_rating", Wall(scope="scope_id")),
    ]
