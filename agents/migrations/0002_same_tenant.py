"""A run cannot name a scope or an agent of another tenant."""

from django.db import migrations

from tenants.migration_operations import same_tenant


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_agents_and_runs")]

    operations = [
        same_tenant("agents_run", "scope_id", "tenants_scope"),
        same_tenant("agents_run", "agent_id", "agents_agent"),
    ]
