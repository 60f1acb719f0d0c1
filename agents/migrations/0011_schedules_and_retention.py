"""Schedules, and how long runs are kept."""

import django.db.models.deletion
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

from tenants.migration_operations import raise_walls, same_tenant
from tenants.walls import Wall


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0010_versions_and_threads"),
        ("tenants", "0005_audit"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="scheduled_for",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="RunRetention",
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
                    "days",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Nothing keeps runs until somebody deletes them.",
                        null=True,
                    ),
                ),
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="run_retention",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "run retention",
            },
        ),
        migrations.CreateModel(
            name="Schedule",
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
                ("name", models.CharField(max_length=200)),
                (
                    "cron",
                    models.CharField(
                        help_text="Minute, hour, day, month, weekday.", max_length=200
                    ),
                ),
                (
                    "timezone",
                    models.CharField(default="UTC", help_text="Of the tz database.", max_length=64),
                ),
                ("request", models.JSONField(help_text="The body that would create the run.")),
                ("enabled", models.BooleanField(default=True)),
                (
                    "allow_overlap",
                    models.BooleanField(
                        default=False, help_text="Begin a run though the one before it is not over."
                    ),
                ),
                ("next_run_at", models.DateTimeField(editable=False, null=True)),
                ("last_run_at", models.DateTimeField(editable=False, null=True)),
                ("last_problem", models.CharField(blank=True, editable=False, max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to="tenants.scope",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to="tenants.tenant",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="schedule",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to="agents.schedule",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("schedule__isnull", False)),
                fields=("schedule", "scheduled_for"),
                name="run_once_per_tick",
            ),
        ),
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(fields=["scope", "id"], name="schedule_of_scope"),
        ),
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(
                condition=models.Q(("enabled", True)), fields=["next_run_at"], name="schedule_due"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.UniqueConstraint(
                fields=("id", "tenant"), name="schedule_id_with_tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("enabled", False), ("next_run_at__isnull", False), _connector="OR"
                ),
                name="schedule_enabled_has_next_run",
            ),
        ),
        same_tenant("agents_schedule", "scope_id", "tenants_scope"),
        same_tenant("agents_run", "schedule_id", "agents_schedule"),
        raise_walls("agents_schedule", Wall(scope="scope_id")),
        raise_walls("agents_runretention", Wall()),
    ]
