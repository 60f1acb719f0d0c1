"""Webhook endpoints and deliveries, behind walls from the start."""

import django.contrib.postgres.fields
import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models

import agents.models.webhooks
from tenants.migration_operations import raise_walls, same_tenant
from tenants.walls import Wall


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0008_dispatch"),
        ("tenants", "0005_audit"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                ("sealed", models.BinaryField(null=True)),
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("url", models.CharField(max_length=500, verbose_name="URL")),
                ("description", models.CharField(blank=True, max_length=200)),
                (
                    "event_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40),
                        default=agents.models.webhooks.all_event_types,
                        size=None,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("disabled_reason", models.CharField(blank=True, editable=False, max_length=200)),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                ("previous_until", models.DateTimeField(editable=False, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "data_key",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="tenants.datakey",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(class)ss",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook endpoint",
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
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
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("delivered", "Delivered"),
                            ("failed", "Failed"),
                        ],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(null=True)),
                (
                    "log",
                    models.JSONField(
                        default=list, help_text="Of each attempt when, what status or problem."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="agents.event",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="agents.webhookendpoint",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "webhook deliveries",
            },
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.UniqueConstraint(
                fields=("id", "tenant"), name="webhook_id_with_tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("event_types__len__gt", 0),
                    (
                        "event_types__contained_by",
                        [
                            "run.cancelled",
                            "run.completed",
                            "run.failed",
                            "run.incomplete",
                            "run.expired",
                            "run.requires_action",
                        ],
                    ),
                ),
                name="webhook_event_types_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("disabled_reason", ""), ("enabled", False), _connector="OR"),
                name="webhook_disabled_says_why",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("status", "pending")),
                fields=["next_attempt_at"],
                name="delivery_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                fields=("endpoint", "event"), name="delivery_once_per_event"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ended_at__isnull", True),
                        ("next_attempt_at__isnull", False),
                        ("status", "pending"),
                    ),
                    models.Q(
                        ("ended_at__isnull", False),
                        ("next_attempt_at__isnull", True),
                        ("status__in", ["delivered", "failed"]),
                    ),
                    _connector="OR",
                ),
                name="delivery_pending_or_ended",
            ),
        ),
        same_tenant("agents_webhookendpoint", "data_key_id", "tenants_datakey"),
        same_tenant("agents_webhookdelivery", "endpoint_id", "agents_webhookendpoint"),
        raise_walls("agents_webhookendpoint", Wall()),
        raise_walls("agents_webhookdelivery", Wall(read_by_whole=True)),
    ]
