"""Row-level security on every tenant's table of this app."""

from django.db import migrations

from tenants.migration_operations import raise_walls
from tenants.walls import SHARED_SCOPE, Wall

OF_A_SHOWN_ROW = (
    "{lookup} IS NOT NULL AND {row}.id IN (SELECT tenant_id FROM tenants_scope"
    " UNION ALL SELECT tenant_id FROM tenants_membership)"
)
SCOPE = Wall(
    scope="id",
    also_read="{row}.kind = 'shared'",
    lookup=("'scope:' || {row}.id = {lookup}", "'user:' || {row}.user_id = {lookup}"),
)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_same_tenant")]

    operations = [
        raise_walls("tenants_tenant", Wall(tenant="id", lookup=(OF_A_SHOWN_ROW,))),
        raise_walls("tenants_membership", Wall(lookup=("'user:' || {row}.user_id = {lookup}",))),
        raise_walls("tenants_scope", SCOPE),
        raise_walls("tenants_datakey", Wall()),
        raise_walls("tenants_providerkey", Wall(scope="scope_id", also_read=SHARED_SCOPE)),
        raise_walls(
            "tenants_accesstoken",
            Wall(scope="scope_id", lookup=("'token:' || {row}.token_id = {lookup}",)),
        ),
        raise_walls("tenants_endpoint", Wall(scope="scope_id", also_read="{row}.scope_id IS NULL")),
    ]
