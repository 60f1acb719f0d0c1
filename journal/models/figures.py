"""Figures of whole days, added up from calls as time goes on, so that a month is read fast."""

from uuid import UUID

from django.db import models
from django.db.models import Q

from journal.models.calls import NAME_LIMIT
from tenants.managers import ScopedManager
from tenants.walls import Wall

EVERYBODY = UUID(int=2**128 - 1)
"""In place of a scope: all of the tenant. In place of a tenant too: all of the installation."""


class DailyFigures(models.Model):
    """One day of one scope, model, operation and key; and the same added up (``EVERYBODY``).

    ``''`` stands for none, since a unique index tells nulls apart; of the installation, single
    keys are not told. A sum is null while no call
    said a figure. ``latencies`` counts answers by bucket (``journal.figures.cells``),
    ``failures`` failed attempts by cause.
    """

    tenant_id = models.UUIDField("tenant")
    scope_id = models.UUIDField("scope")
    day = models.DateField()
    llm_name = models.CharField(max_length=NAME_LIMIT)
    model = models.CharField(max_length=NAME_LIMIT)
    operation = models.CharField(max_length=NAME_LIMIT)
    key_id = models.CharField(max_length=NAME_LIMIT)
    key_source = models.CharField(max_length=12)

    calls = models.BigIntegerField()
    errors = models.BigIntegerField()
    prompt_tokens = models.BigIntegerField(null=True)
    completion_tokens = models.BigIntegerField(null=True)
    total_tokens = models.BigIntegerField(null=True)
    cached_tokens = models.BigIntegerField(null=True)
    reasoning_tokens = models.BigIntegerField(null=True)
    cost_micros = models.BigIntegerField(null=True)
    latencies = models.JSONField()
    failures = models.JSONField()

    wall = Wall(scope="scope_id")
    objects = ScopedManager["DailyFigures"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=[
                    "tenant_id",
                    "scope_id",
                    "day",
                    "llm_name",
                    "model",
                    "operation",
                    "key_id",
                    "key_source",
                ],
                name="one_row_of_figures",
            ),
        )
        indexes = (
            models.Index(
                fields=["day"], condition=Q(scope_id=EVERYBODY), name="figures_of_tenants"
            ),
        )

    def __str__(self) -> str:
        return f"{self.day}: {self.calls} calls of {self.llm_name}"


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
