"""What happened: every attempt at a provider, and what people thought of the answers.

Rows are appended. A call changes once, from its intent to its outcome, and a trigger holds
that line (migration 0001); a rating never changes.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from llmbroker.models import CallStatus, KeySource
from tenants.context import INSTALLATION as INSTALLATION_REACH
from tenants.managers import ScopedManager
from tenants.walls import Wall

INSTALLATION = INSTALLATION_REACH.tenant_id
"""Scope and tenant of a call that the installation makes for itself."""

NAME_LIMIT = 200
"""Characters of a name or label; also what keeps an index entry within its page."""

URL_LIMIT = 500
DETAIL_LIMIT = 2000

STATUSES = [(status.value, status.value.replace("_", " ")) for status in CallStatus]
KEY_SOURCES = [(source.value, source.value) for source in KeySource]


class Call(models.Model):
    """One attempt. The columns are those of ``llmbroker.models.Call``.

    The table is partitioned by hash of ``scope_id``, and its primary key in the database is
    ``(id, scope_id)``. Ids are UUIDv7 of the attempt's start, so their order is time's.

    Scope and tenant are no foreign keys: each insert would lock its scope's row, and deleting
    a scope would delete its calls in one long transaction instead of in batches.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField("tenant")
    scope_id = models.UUIDField("scope")
    operation = models.CharField(max_length=NAME_LIMIT, null=True, blank=True)
    trace_id = models.CharField("trace", max_length=NAME_LIMIT, null=True, blank=True)

    llm_name = models.CharField("LLM", max_length=NAME_LIMIT)
    base_url = models.CharField("base URL", max_length=URL_LIMIT, null=True, blank=True)
    model = models.CharField("model asked", max_length=NAME_LIMIT, null=True, blank=True)
    model_answered = models.CharField(max_length=NAME_LIMIT, null=True, blank=True)
    key_id = models.CharField("key", max_length=NAME_LIMIT, null=True, blank=True)
    key_source = models.CharField(
        "whose key", max_length=12, choices=KEY_SOURCES, null=True, blank=True
    )

    ts = models.DateTimeField("started at")
    status = models.CharField(max_length=12, choices=STATUSES)
    http_status = models.PositiveSmallIntegerField("HTTP status", null=True, blank=True)
    streamed = models.BooleanField(default=False)
    first_token_ms = models.PositiveIntegerField("first token, ms", null=True, blank=True)
    latency_ms = models.PositiveIntegerField("latency, ms", null=True, blank=True)

    # The provider's figures; null is unknown, which is not 0.
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    total_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    reasoning_tokens = models.PositiveIntegerField(null=True, blank=True)

    error_class = models.CharField(max_length=NAME_LIMIT, null=True, blank=True)
    error_detail = models.CharField(max_length=DETAIL_LIMIT, null=True, blank=True)
    cooldown_until = models.DateTimeField(null=True, blank=True)

    # The provider's id of the answer: kept beside, never a key of ours.
    provider_id = models.CharField("provider's id", max_length=NAME_LIMIT, null=True, blank=True)
    run = models.CharField(max_length=NAME_LIMIT, null=True, blank=True)
    step = models.PositiveIntegerField(null=True, blank=True)
    # Millionths of a US dollar, by the price list named beside them; null is unknown.
    cost_micros = models.BigIntegerField("cost, $/1,000,000", null=True, blank=True)
    price = models.CharField("price list", max_length=NAME_LIMIT, null=True, blank=True)

    wall = Wall(scope="scope_id")
    objects = ScopedManager["Call"]()

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=["scope_id", "id"], name="call_of_scope"),
            models.Index(fields=["tenant_id", "id"], name="call_of_tenant"),
            models.Index(
                fields=["scope_id", "operation", "id"],
                condition=Q(operation__isnull=False),
                name="call_of_operation",
            ),
            models.Index(
                fields=["scope_id", "trace_id", "id"],
                condition=Q(trace_id__isnull=False),
                name="call_of_trace",
            ),
            models.Index(
                fields=["scope_id", "run", "id"],
                condition=Q(run__isnull=False),
                name="call_of_run",
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(status__in=[value for value, _ in STATUSES]),
                name="call_status_known",
            ),
            models.CheckConstraint(
                condition=Q(key_source__isnull=True)
                | Q(key_source__in=[value for value, _ in KEY_SOURCES]),
                name="call_key_source_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.llm_name} {self.status} at {self.ts:%Y-%m-%d %H:%M:%S}"

    @property
    def score(self) -> float | None:
        """The newest rating; without a query where ``selectors.with_score`` read the call."""
        newest = next(iter(self.ratings.all()), None)
        return None if newest is None else newest.score


class Rating(models.Model):
    """What somebody thought of an answer, 0 … 1. A call's newest rating counts."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # The database's own foreign key is (call_id, scope_id): a rating cannot name a call of
    # another scope, and goes when its call goes.
    call = models.ForeignKey(
        Call, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="ratings"
    )
    tenant_id = models.UUIDField("tenant")
    scope_id = models.UUIDField("scope")
    score = models.FloatField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    wall = Wall(scope="scope_id")
    objects = ScopedManager["Rating"]()

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=["call", "id"], name="rating_of_call"),)
        constraints = (
            models.CheckConstraint(
                condition=Q(score__gte=0.0, score__lte=1.0), name="rating_score_range"
            ),
        )

    def __str__(self) -> str:
        return f"{self.score:g}"
