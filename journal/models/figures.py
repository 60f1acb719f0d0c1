"""Figures of whole days, added up from calls as time goes on, so that a month is read fast."""

from uuid import UUID

from django.db import models

from tenants.managers import ScopedManager
from tenants.walls import Wall

EVERYBODY = UUID(int=2**128 - 1)
"""In place of a scope: all of the tenant. In place of a tenant too: all of the installation."""


class DailyFigures(models.Model):
    """One day of one scope; and the same added up (``EVERYBODY``).

    ``cells`` are arrays, one for each model, operation and key of that day, in the order of
    ``journal.figures.merging.CELL``: names (``''`` stands for none), counts, sums (null while no
    call said a figure), answers by bucket of latency and failures by cause. Of the installation,
    single keys are not told.
    """

    tenant_id = models.UUIDField("tenant")
    scope_id = models.UUIDField("scope")
    day = models.DateField()
    cells = models.JSONField()

    wall = Wall(scope="scope_id")
    objects = ScopedManager["DailyFigures"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["tenant_id", "scope_id", "day"], name="one_day_of_figures"
            ),
        )

    def __str__(self) -> str:
        return f"{self.day}: {len(self.cells)} cells"


class StaleDay(models.Model):
    """A day of a scope that got a call after it had been added up: to be added up again."""

    tenant_id = models.UUIDField()
    scope_id = models.UUIDField()
    day = models.DateField()

    wall = Wall(scope="scope_id")
    objects = ScopedManager["StaleDay"]()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["scope_id", "day"], name="one_stale_day"),)

    def __str__(self) -> str:
        return f"{self.day} of {self.scope_id}"


class Progress(models.Model):
    """How far the figures have come: every call whose id is of an earlier moment is in them."""

    name = models.CharField(primary_key=True, max_length=20)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} until {self.until}"
