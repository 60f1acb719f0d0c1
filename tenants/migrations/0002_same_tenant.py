"""A row that names a scope or a data key beside its tenant cannot name another tenant's."""

from django.db import migrations

from tenants.migration_operations import same_tenant


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_tenants")]

    operations = [
        same_tenant("tenants_providerkey", "scope_id", "tenants_scope"),
        same_tenant("tenants_providerkey", "data_key_id", "tenants_datakey"),
        same_tenant("tenants_accesstoken", "scope_id", "tenants_scope"),
        same_tenant("tenants_accesstoken", "pepper_id", "tenants_datakey"),
        same_tenant("tenants_endpoint", "scope_id", "tenants_scope"),
    ]
