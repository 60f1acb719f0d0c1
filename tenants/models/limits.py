"""Limits of tenants, scopes and tokens, and the money that was spent under them."""

from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from tenants.managers import ScopedManager
from tenants.models.people import Scope, Tenant
from tenants.models.tokens import AccessToken
from tenants.walls import Wall


class Limit(models.Model):
    """One limit: of the tenant as a whole, of one scope, or of one access token."""

    class Kind(models.TextChoices):
        REQUESTS_PER_MINUTE = "requests_per_minute", "requests per minute"
        TOKENS_PER_MINUTE = "tokens_per_minute", "tokens per minute"
        CONCURRENT_CALLS = "concurrent_calls", "concurrent calls"
        CONCURRENT_RUNS = "concurrent_runs", "concurrent runs"
        EXECUTING_RUNS = "executing_runs", "runs at work at once"
        USD_PER_DAY = "usd_per_day", "US dollars per day"
        USD_PER_MONTH = "usd_per_month", "US dollars per month"

    MONEY = (Kind.USD_PER_DAY, Kind.USD_PER_MONTH)
    RUNS = (Kind.CONCURRENT_RUNS, Kind.EXECUTING_RUNS)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="limits")
    scope = models.ForeignKey(Scope, models.CASCADE, null=True, blank=True, related_name="limits")
    token = models.ForeignKey(
        AccessToken, models.CASCADE, null=True, blank=True, related_name="limits"
    )
    kind = models.CharField(max_length=20, choices=Kind.choices)
    value = models.DecimalField(max_digits=20, decimal_places=6)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    wall = Wall()
    objects = ScopedManager["Limit"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["tenant", "scope", "token", "kind"],
                name="limit_once_per_kind",
                nulls_distinct=False,
            ),
            models.UniqueConstraint(fields=["id", "tenant"], name="limit_id_with_tenant"),
            models.CheckConstraint(condition=Q(value__gte=0), name="limit_not_negative"),
            models.CheckConstraint(
                condition=Q(scope__isnull=True) | Q(token__isnull=True),
                name="limit_of_scope_or_token",
            ),
            models.CheckConstraint(
                condition=Q(
                    kind__in=[
                        "requests_per_minute",
                        "tokens_per_minute",
                        "concurrent_calls",
                        "concurrent_runs",
                        "executing_runs",
                        "usd_per_day",
                        "usd_per_month",
                    ]
                ),
                name="limit_kind_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.value:f} {self.get_kind_display()} for the {self.of}"

    @property
    def of(self) -> str:
        """Whose limit it is."""
        if self.token_id is not None:
            return "token"
        return "tenant" if self.scope_id is None else "scope"


class Spending(models.Model):
    """What was spent under a money limit in one of its periods."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    limit = models.ForeignKey(Limit, models.CASCADE, related_name="spending")
    period = models.DateField(help_text="The period's first day.")
    spent = models.DecimalField(max_digits=24, decimal_places=12, default=0)
    ledger = models.CharField(
        max_length=32,
        default="",
        db_default="",
        editable=False,
        help_text="The ledger that was written off here last; see tenants.limits.ledger.",
    )
    ledger_total = models.DecimalField(
        max_digits=24,
        decimal_places=12,
        default=0,
        db_default=0,
        editable=False,
        help_text="How much of that ledger's total is in what was spent.",
    )

    wall = Wall()
    objects = ScopedManager["Spending"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["limit", "period"], name="spending_once_per_period"),
            models.UniqueConstraint(fields=["id", "tenant"], name="spending_id_with_tenant"),
        )

    def __str__(self) -> str:
        return f"{self.spent:f} since {self.period}"


class Reservation(models.Model):
    """What one call that is under way may cost at its worst."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    spending = models.ForeignKey(Spending, models.CASCADE, related_name="reservations")
    call_id = models.UUIDField()
    amount = models.DecimalField(max_digits=24, decimal_places=12)
    expires_at = models.DateTimeField()

    wall = Wall()
    objects = ScopedManager["Reservation"]()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["spending", "call_id"], name="reservation_once_per_call"
            ),
        )

    def __str__(self) -> str:
        return f"{self.amount:f} until {self.expires_at:%H:%M:%S}"
