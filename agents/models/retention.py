"""How long runs are kept."""

from django.db import models
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models import Tenant
from tenants.walls import Wall


class RunRetention(models.Model):
    """How many days a tenant keeps its runs after their end; without it the settings say."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.OneToOneField(Tenant, models.CASCADE, related_name="run_retention")
    days = models.PositiveIntegerField(
        null=True, blank=True, help_text="Nothing keeps runs until somebody deletes them."
    )

    wall = Wall()
    objects = ScopedManager["RunRetention"]()

    class Meta:
        verbose_name_plural = "run retention"

    def __str__(self) -> str:
        return f"of {self.tenant}"
