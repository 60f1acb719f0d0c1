"""Runs that tell what models say while they say it, whether or not anybody listens yet."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0011_schedules_and_retention"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="deltas",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Tell what models say while they say it, whoever listens.",
            ),
        ),
    ]
