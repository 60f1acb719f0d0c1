"""What was answered to requests with an Idempotency-Key."""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models

from tenants.migration_operations import raise_walls, same_tenant
from tenants.walls import Wall


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0006_run_weights"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotentRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                (
                    "fingerprint",
                    models.BinaryField(help_text="Of route and body, with our key."),
                ),
                ("status", models.PositiveSmallIntegerField(default=0)),
                ("answer", models.JSONField(null=True)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "scope",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.scope",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope", "key"), name="idempotency_key_once_per_scope"
                    )
                ],
            },
        ),
        same_tenant("tenants_idempotentrequest", "scope_id", "tenants_scope"),
        raise_walls("tenants_idempotentrequest", Wall(scope="scope_id")),
    ]
