"""One row for a day of a scope, holding its cells: what is added up already is carried along."""

from django.db import migrations, models

from tenants.migration_operations import raise_walls
from tenants.walls import Wall

FUNCTIONS = """
CREATE FUNCTION journal_cells(cells jsonb) RETURNS TABLE (
    llm_name text, model text, operation text, key_id text, key_source text,
    calls bigint, errors bigint, prompt_tokens bigint, completion_tokens bigint,
    total_tokens bigint, cached_tokens bigint, reasoning_tokens bigint, cost_micros bigint,
    latencies jsonb, failures jsonb
) LANGUAGE sql IMMUTABLE AS $$
    SELECT cell->>0, cell->>1, cell->>2, cell->>3, cell->>4,
        (cell->>5)::bigint, (cell->>6)::bigint, (cell->>7)::bigint, (cell->>8)::bigint,
        (cell->>9)::bigint, (cell->>10)::bigint, (cell->>11)::bigint, (cell->>12)::bigint,
        cell->13, cell->14
    FROM jsonb_array_elements(cells) AS cell
$$;
CREATE FUNCTION journal_negated(counts jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT coalesce(jsonb_object_agg(name, -number::bigint), '{}')
    FROM jsonb_each_text(counts) AS counted (name, number)
$$;
CREATE OR REPLACE FUNCTION journal_merge(jsonb, jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT coalesce(jsonb_object_agg(name, total), '{}')
    FROM (
        SELECT name, sum(number::bigint) AS total
        FROM (
            SELECT * FROM jsonb_each_text($1) UNION ALL SELECT * FROM jsonb_each_text($2)
        ) AS counts (name, number)
        GROUP BY name HAVING sum(number::bigint) <> 0
    ) AS merged
$$;
DROP AGGREGATE journal_merged(jsonb);
CREATE AGGREGATE journal_merged(jsonb) (SFUNC = journal_merge, STYPE = jsonb);
"""
UNDO_FUNCTIONS = """
DROP AGGREGATE journal_merged(jsonb);
CREATE AGGREGATE journal_merged(jsonb) (SFUNC = journal_merge, STYPE = jsonb, INITCOND = '{}');
DROP FUNCTION journal_negated(jsonb);
DROP FUNCTION journal_cells(jsonb);
"""

# The walls hold the tables' owner too, who would otherwise see, and carry, nothing.
CARRY = """
ALTER TABLE journal_formerfigures NO FORCE ROW LEVEL SECURITY;
INSERT INTO journal_dailyfigures (tenant_id, scope_id, day, cells)
SELECT tenant_id, scope_id, day, jsonb_agg(jsonb_build_array(
    llm_name, model, operation, key_id, key_source, calls, errors, prompt_tokens,
    completion_tokens, total_tokens, cached_tokens, reasoning_tokens, cost_micros,
    latencies, failures))
FROM journal_formerfigures GROUP BY tenant_id, scope_id, day;
"""


class Migration(migrations.Migration):
    dependencies = [("journal", "0005_retention_and_payloads")]

    operations = [
        migrations.RunSQL(FUNCTIONS, UNDO_FUNCTIONS),
        migrations.RenameModel("DailyFigures", "FormerFigures"),
        migrations.CreateModel(
            name="DailyFigures",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tenant_id", models.UUIDField(verbose_name="tenant")),
                ("scope_id", models.UUIDField(verbose_name="scope")),
                ("day", models.DateField()),
                ("cells", models.JSONField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "scope_id", "day"), name="one_day_of_figures"
                    )
                ],
            },
        ),
        migrations.RunSQL(CARRY, migrations.RunSQL.noop),
        migrations.DeleteModel("FormerFigures"),
        raise_walls("journal_dailyfigures", Wall(scope="scope_id")),
    ]
