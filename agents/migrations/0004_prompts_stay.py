"""An agent's prompt is of its tenant, and what a version says never changes."""

from django.db import migrations

from tenants.migration_operations import same_tenant

UNCHANGING = """
CREATE FUNCTION agents_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'agents: prompt version % is never changed', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER agents_promptversion_unchanging BEFORE UPDATE OF
    id, prompt_id, number, template, description, variables, tools, effect, created_at
    ON agents_promptversion FOR EACH ROW EXECUTE FUNCTION agents_refuse_change();
"""
UNDO = """
DROP TRIGGER agents_promptversion_unchanging ON agents_promptversion;
DROP FUNCTION agents_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("agents", "0003_prompt_functions")]

    operations = [
        same_tenant("agents_agent", "prompt_id", "agents_promptfunction"),
        migrations.RunSQL(UNCHANGING, UNDO),
    ]
