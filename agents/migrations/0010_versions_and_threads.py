"""Agents keep their versions, runs their answers' schemas, and threads hold several runs."""

import django.contrib.postgres.fields
import django.db.models.deletion
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

from tenants.migration_operations import raise_walls, same_tenant
from tenants.walls import Wall

FIRST_VERSIONS = """
INSERT INTO agents_agentversion
    (id, agent_id, number, instructions, prompt, tools, max_steps, operation, prefer,
     output_schema, created_at)
SELECT gen_random_uuid(), agent.id, 1, agent.instructions, prompt.slug, agent.tools,
       agent.max_steps, agent.operation, agent.prefer, agent.output_schema, agent.updated_at
FROM agents_agent AS agent LEFT JOIN agents_promptfunction AS prompt ON prompt.id = agent.prompt_id
"""
UNCHANGING = """
CREATE FUNCTION agents_refuse_agent_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'agents: version % of an agent is never changed', OLD.number
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER agents_agentversion_unchanging BEFORE UPDATE OF
    id, agent_id, number, instructions, prompt, tools, max_steps, operation, prefer,
    output_schema, created_at
    ON agents_agentversion FOR EACH ROW EXECUTE FUNCTION agents_refuse_agent_change();
"""
UNDO = """
DROP TRIGGER agents_agentversion_unchanging ON agents_agentversion;
DROP FUNCTION agents_refuse_agent_change();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0009_webhooks"),
        ("tenants", "0005_audit"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentVersion",
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
                ("number", models.PositiveIntegerField()),
                ("instructions", models.TextField(blank=True)),
                ("prompt", models.CharField(max_length=64, null=True)),
                (
                    "tools",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                ("max_steps", models.PositiveSmallIntegerField()),
                ("operation", models.CharField(blank=True, max_length=200)),
                (
                    "prefer",
                    models.CharField(
                        choices=[("quality", "quality"), ("latency", "latency"), ("cost", "cost")],
                        max_length=7,
                    ),
                ),
                ("output_schema", models.JSONField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ("-number",),
            },
        ),
        migrations.CreateModel(
            name="Thread",
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
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="ThreadMessage",
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
                ("number", models.PositiveIntegerField()),
                (
                    "message",
                    models.JSONField(help_text="With role and content, as models take it."),
                ),
                (
                    "run_id",
                    models.UUIDField(help_text="The run that it came with, or from.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ("number",),
            },
        ),
        migrations.AddField(
            model_name="agent",
            name="output_schema",
            field=models.JSONField(
                blank=True,
                help_text="The JSON Schema that a run's final answer must fit.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="prefer",
            field=models.CharField(
                choices=[("quality", "quality"), ("latency", "latency"), ("cost", "cost")],
                default="quality",
                help_text="What decides which model.",
                max_length=7,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="history_index",
            field=models.PositiveSmallIntegerField(
                editable=False,
                help_text="While the run waits for its turn in its thread: where in its messages the thread's will go.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="output_schema",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="prefer",
            field=models.CharField(
                choices=[("quality", "quality"), ("latency", "latency"), ("cost", "cost")],
                default="quality",
                max_length=7,
            ),
        ),
        migrations.AddConstraint(
            model_name="agent",
            constraint=models.CheckConstraint(
                condition=models.Q(("prefer__in", ["quality", "latency", "cost"])),
                name="agent_prefer_known",
            ),
        ),
        migrations.AddField(
            model_name="agentversion",
            name="agent",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="versions",
                to="agents.agent",
            ),
        ),
        migrations.AddField(
            model_name="agentversion",
            name="created_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="agent_version",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agents.agentversion",
            ),
        ),
        migrations.AddField(
            model_name="thread",
            name="scope",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="threads",
                to="tenants.scope",
            ),
        ),
        migrations.AddField(
            model_name="thread",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="threads",
                to="tenants.tenant",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="thread",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to="agents.thread",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("thread__isnull", False)),
                fields=["thread", "id"],
                name="run_of_thread",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("history_index__isnull", True),
                    ("status__in", ["queued", "in_progress", "requires_action", "cancelling"]),
                    ("thread__isnull", False),
                ),
                fields=("thread",),
                name="run_one_active_per_thread",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("history_index__isnull", True),
                    ("status__in", ["queued", "cancelled", "expired"]),
                    _connector="OR",
                ),
                name="run_begins_with_its_turn",
            ),
        ),
        migrations.AddField(
            model_name="threadmessage",
            name="thread",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="agents.thread",
            ),
        ),
        migrations.AddConstraint(
            model_name="agentversion",
            constraint=models.UniqueConstraint(
                fields=("agent", "number"), name="agent_version_number_once"
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(fields=["scope", "id"], name="thread_of_scope"),
        ),
        migrations.AddConstraint(
            model_name="thread",
            constraint=models.UniqueConstraint(
                fields=("id", "tenant"), name="thread_id_with_tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="threadmessage",
            constraint=models.UniqueConstraint(
                fields=("thread", "number"), name="thread_message_number_once"
            ),
        ),
        same_tenant("agents_run", "thread_id", "agents_thread"),
        same_tenant("agents_thread", "scope_id", "tenants_scope"),
        migrations.RunSQL(FIRST_VERSIONS, migrations.RunSQL.noop),
        migrations.RunSQL(UNCHANGING, UNDO),
        raise_walls("agents_agentversion", Wall(parent=("agent_id", "agents_agent"))),
        raise_walls("agents_thread", Wall(scope="scope_id")),
        raise_walls("agents_threadmessage", Wall(parent=("thread_id", "agents_thread"))),
    ]
