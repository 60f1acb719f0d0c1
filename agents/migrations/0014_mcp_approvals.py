"""MCP servers whose tools' calls wait for somebody's word."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0013_held_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="mcpserver",
            name="requires_approval",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=200),
                blank=True,
                db_default=[],
                default=list,
                help_text="The tools whose calls wait for somebody's word, by the server's names or by"
                " those that models see; * is all.",
                size=None,
            ),
        ),
    ]
