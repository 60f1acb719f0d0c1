"""Events: what happened to a run, in order. One log for polling and for whoever listens."""

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from agents.models.runs import Run
from tenants.managers import ScopedManager
from tenants.walls import Wall


class Event(models.Model):
    """One thing that happened. Its data points to steps, which hold the content."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, db_index=False, related_name="events")
    sequence_number = models.PositiveIntegerField()
    type = models.CharField(max_length=40)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    wall = Wall(parent=("run_id", "agents_run"))
    objects = ScopedManager["Event"]()

    class Meta:
        ordering = ("sequence_number",)
        constraints = (
            models.UniqueConstraint(
                fields=["run", "sequence_number"], name="event_number_once_per_run"
            ),
            models.CheckConstraint(
                condition=Q(sequence_number__gte=1), name="event_numbers_start_at_1"
            ),
        )

    def __str__(self) -> str:
        return f"{self.sequence_number} {self.type}"
