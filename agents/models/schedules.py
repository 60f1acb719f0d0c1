"""Schedules: runs that begin by the clock."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models import Scope, Tenant
from tenants.walls import Wall


class Schedule(models.Model):
    """A run to be created whenever a cron expression says so, in the name of one scope.

    ``next_run_at`` is the one tick that is still to come: ticks that were missed do not pile up.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="schedules")
    scope = models.ForeignKey(Scope, models.CASCADE, db_index=False, related_name="schedules")
    name = models.CharField(max_length=200)
    cron = models.CharField(max_length=200, help_text="Minute, hour, day, month, weekday.")
    timezone = models.CharField(max_length=64, default="UTC", help_text="Of the tz database.")
    request = models.JSONField(help_text="The body that would create the run.")
    enabled = models.BooleanField(default=True)
    allow_overlap = models.BooleanField(
        default=False, help_text="Begin a run though the one before it is not over."
    )
    next_run_at = models.DateTimeField(null=True, editable=False)
    last_run_at = models.DateTimeField(null=True, editable=False)
    last_problem = models.CharField(max_length=500, blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    wall = Wall(scope="scope_id")
    objects = ScopedManager["Schedule"]()

    class Meta:
        indexes = (
            models.Index(fields=["scope", "id"], name="schedule_of_scope"),
            models.Index(fields=["next_run_at"], condition=Q(enabled=True), name="schedule_due"),
        )
        constraints = (
            # The target of foreign keys that name a schedule together with its tenant.
            models.UniqueConstraint(fields=["id", "tenant"], name="schedule_id_with_tenant"),
            models.CheckConstraint(
                condition=Q(enabled=False) | Q(next_run_at__isnull=False),
                name="schedule_enabled_has_next_run",
            ),
        )

    def __str__(self) -> str:
        return self.name
