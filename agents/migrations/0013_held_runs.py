"""An index of the few runs that wait for their turn in a thread, which the beat looks through."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0012_deltas"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("history_index__isnull", False), ("status", "queued")),
                fields=["thread"],
                name="run_held",
            ),
        ),
    ]
