"""The journal: calls in hash partitions of their scope, and ratings that hang on them."""

import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

from journal.partitioning import PartitionByHash

SAME_SCOPE_RATING = """
ALTER TABLE journal_rating ADD CONSTRAINT rating_of_call_in_scope
    FOREIGN KEY (call_id, scope_id) REFERENCES journal_call (id, scope_id) ON DELETE CASCADE;
"""

# The condition is evaluated without calling the function, so that the one lawful change,
# from intent to outcome, costs nothing.
CLOSED_CALL = """
CREATE FUNCTION journal_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'journal: call % has its outcome and is never changed', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER journal_call_closed BEFORE UPDATE ON journal_call FOR EACH ROW
    WHEN (OLD.status <> 'started') EXECUTE FUNCTION journal_refuse_change();
"""
UNDO_CLOSED_CALL = """
DROP TRIGGER journal_call_closed ON journal_call;
DROP FUNCTION journal_refuse_change();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Call",
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
                ("tenant_id", models.UUIDField(verbose_name="tenant")),
                ("scope_id", models.UUIDField(verbose_name="scope")),
                ("operation", models.CharField(blank=True, max_length=200, null=True)),
                (
                    "trace_id",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="trace"),
                ),
                ("llm_name", models.CharField(max_length=200, verbose_name="LLM")),
                (
                    "base_url",
                    models.CharField(
                        blank=True, max_length=500, null=True, verbose_name="base URL"
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True, max_length=200, null=True, verbose_name="model asked"
                    ),
                ),
                ("model_answered", models.CharField(blank=True, max_length=200, null=True)),
                (
                    "key_id",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="key"),
                ),
                (
                    "key_source",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("own", "own"),
                            ("shared", "shared"),
                            ("installation", "installation"),
                        ],
                        max_length=12,
                        null=True,
                        verbose_name="whose key",
                    ),
                ),
                ("ts", models.DateTimeField(verbose_name="started at")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("started", "started"),
                            ("ok", "ok"),
                            ("rate_limited", "rate limited"),
                            ("unavailable", "unavailable"),
                            ("error", "error"),
                            ("interrupted", "interrupted"),
                            ("superseded", "superseded"),
                            ("unknown", "unknown"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "http_status",
                    models.PositiveSmallIntegerField(
                        blank=True, null=True, verbose_name="HTTP status"
                    ),
                ),
                ("streamed", models.BooleanField(default=False)),
                (
                    "first_token_ms",
                    models.PositiveIntegerField(
                        blank=True, null=True, verbose_name="first token, ms"
                    ),
                ),
                (
                    "latency_ms",
                    models.PositiveIntegerField(blank=True, null=True, verbose_name="latency, ms"),
                ),
                ("prompt_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("completion_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("total_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cached_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("reasoning_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("error_class", models.CharField(blank=True, max_length=200, null=True)),
                ("error_detail", models.CharField(blank=True, max_length=2000, null=True)),
                ("cooldown_until", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["scope_id", "id"], name="call_of_scope"),
                    models.Index(fields=["tenant_id", "id"], name="call_of_tenant"),
                    models.Index(
                        condition=models.Q(("operation__isnull", False)),
                        fields=["scope_id", "operation", "id"],
                        name="call_of_operation",
                    ),
                    models.Index(
                        condition=models.Q(("trace_id__isnull", False)),
                        fields=["scope_id", "trace_id", "id"],
                        name="call_of_trace",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "started",
                                    "ok",
                                    "rate_limited",
                                    "unavailable",
                                    "error",
                                    "interrupted",
                                    "superseded",
                                    "unknown",
                                ],
                            )
                        ),
                        name="call_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("key_source__isnull", True),
                            ("key_source__in", ["own", "shared", "installation"]),
                            _connector="OR",
                        ),
                        name="call_key_source_known",
                    ),
                ],
            },
        ),
        PartitionByHash("Call", column="scope_id", partitions=16),
        migrations.CreateModel(
            name="Rating",
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
                ("tenant_id", models.UUIDField(verbose_name="tenant")),
                ("scope_id", models.UUIDField(verbose_name="scope")),
                ("score", models.FloatField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "call",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="ratings",
                        to="journal.call",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["call", "id"], name="rating_of_call")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("score__gte", 0.0), ("score__lte", 1.0)),
                        name="rating_score_range",
                    )
                ],
            },
        ),
        migrations.RunSQL(
            SAME_SCOPE_RATING, "ALTER TABLE journal_rating DROP CONSTRAINT rating_of_call_in_scope;"
        ),
        migrations.RunSQL(CLOSED_CALL, UNDO_CLOSED_CALL),
    ]
