"""Row-level security on agents and runs, and through these on what runs did."""

from django.db import migrations

from tenants.migration_operations import raise_walls
from tenants.walls import Wall

OF_A_RUN = Wall(parent=("run_id", "agents_run"))


class Migration(migrations.Migration):
    dependencies = [("agents", "0006_mcp_servers"), ("tenants", "0003_walls")]

    operations = [
        raise_walls("agents_agent", Wall()),
        raise_walls(
            "agents_run", Wall(scope="scope_id", lookup=("'run:' || {row}.id = {lookup}",))
        ),
        raise_walls("agents_promptfunction", Wall()),
        raise_walls("agents_httptool", Wall()),
        raise_walls("agents_mcpserver", Wall()),
        raise_walls("agents_promptversion", Wall(parent=("prompt_id", "agents_promptfunction"))),
        raise_walls("agents_step", OF_A_RUN),
        raise_walls("agents_event", OF_A_RUN),
    ]
